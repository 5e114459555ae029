"""Loaded versions: a bounded cache, least recently used out first. What a name or alias means is asked of the database each time."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from frugal.models import Ensemble
from frugal.service.registry.versions import read_ensemble, resolve
from frugal.service.store.db import Database
from frugal.service.store.threads import in_thread


@dataclass(frozen=True, slots=True)
class Version:
    """A published ensemble, loaded, with its questions as the wire shows them."""

    name: str
    number: int
    ensemble: Ensemble
    questions: dict[str, dict[str, Any]]


class Versions:
    """Versions by name and number. They never change, so what is loaded is never stale."""

    def __init__(self, database: Database, most: int) -> None:
        self.database = database
        self.most = most
        self._loaded: OrderedDict[tuple[str, int], Version] = OrderedDict()
        self._loading: dict[tuple[str, int], asyncio.Task[Version]] = {}

    def __len__(self) -> int:
        return len(self._loaded)

    async def find(self, reference: str) -> Version:
        """What `name`, `name@alias` or `name:version` means at this moment."""
        return await self.get(*await in_thread(resolve, self.database, reference))

    async def get(self, name: str, number: int) -> Version:
        key = (name, number)
        version = self._loaded.get(key)
        if version is not None:
            self._loaded.move_to_end(key)
            return version
        loading = self._loading.get(key)
        if loading is None:  # callers that come while it loads wait for the same
            loading = self._loading[key] = asyncio.create_task(self._load(key))
        return await asyncio.shield(loading)

    async def _load(self, key: tuple[str, int]) -> Version:
        try:
            ensemble = await in_thread(read_ensemble, self.database, *key)
            version = self._loaded[key] = Version(*key, ensemble, questions_of(ensemble))
            while len(self._loaded) > self.most:
                self._loaded.popitem(last=False)
            return version
        finally:
            del self._loading[key]


def questions_of(ensemble: Ensemble) -> dict[str, dict[str, Any]]:
    """Per feature, the part of a question that does not change."""
    return {
        feature.name: {
            "kind": feature.kind,
            "categories": list(feature.categories) or None,
            "unit": feature.unit,
            "question": feature.question,
            "delayed": feature.name in ensemble.costs.delayed,
        }
        for feature in ensemble.schema.features
        if feature.name in ensemble.used
    }
