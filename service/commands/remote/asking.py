"""`frugal ask --url`: the interview with a model on a server."""

import argparse

from frugal.models import Feature
from frugal.models.schema import Value
from frugal.service.client import Client, Json
from frugal.service.commands.interview import Now, told
from frugal.service.commands.remote.connecting import connected


def ask(options: argparse.Namespace) -> str:
    """The interview with a model on a server."""
    with connected(options) as client:
        session = client.open(options.model, options.budget, aim=options.aim, confidence=options.confidence)
        return told(RemoteCase(client, session), options.json)


class RemoteCase:
    """A session on a server, as the interview sees it."""

    def __init__(self, client: Client, session: Json) -> None:
        self.client, self.session = client, session

    def now(self) -> Now:
        asked, said = self.session["ask"], self.session["prediction"]
        reason = said["reason"] or ("waiting" if asked is None else None)
        money = self.session["spent"], self.session["budget"]
        return Now(_feature(asked), asked["cost"] if asked else 0.0, *money, said["label"], said["probabilities"], said["votes"], reason)

    def answer(self, feature: str, value: Value) -> Now:
        self.session = self.client.answer(self.session["id"], feature, value)
        return self.now()

    def stop(self) -> Now:
        self.session = self.client.finish(self.session["id"])
        return self.now()

    def shown(self) -> Json:
        return self.session


def _feature(asked: Json | None) -> Feature | None:
    if asked is None:
        return None
    return Feature(asked["feature"], asked["kind"], tuple(asked["categories"] or ()), asked["unit"], asked["question"])
