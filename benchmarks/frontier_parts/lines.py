"""The report's lines: one per setting, seed and step, kept in a file so that a run that was cut off goes on where it stopped."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.frontier_parts.settings import Setting


class Key(NamedTuple):
    setting: str
    seed: int
    step: str


class Lines:
    """Those of one way to run: with ordinal codes or real categories, strict or not. Of two with one key the later counts."""

    def __init__(self, path: Path | None, **mode: bool) -> None:
        self.path, self.mode = path, mode
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
        self.known: dict[Key, dict[str, Any]] = {}
        for text in path.read_text().splitlines() if path and path.exists() else ():
            line = json.loads(text)
            if all(line[name] == value for name, value in mode.items()):
                self.known[_key(line)] = line

    def __contains__(self, key: Key) -> bool:
        return key in self.known

    def add(self, key: Key, found: dict[str, Any]) -> None:
        line = key._asdict() | self.mode | found
        self.known[key] = line
        if self.path:
            with self.path.open("a") as file:
                file.write(json.dumps(line) + "\n")

    def rivals(self, setting: Setting) -> dict[str, dict[int, dict[str, Any]]]:
        """Of every rival's curve: by seed, what was measured."""
        return self._gathered(setting, lambda line: line.get("rivals", {}))

    def budgets(self, setting: Setting, step: str) -> dict[str, dict[str, dict[int, dict[str, Any]]]]:
        """By hard budget, in percent, the same for the rivals of one part."""
        percents = self._percents(setting, step)
        return {percent: self._gathered(setting, lambda line, p=percent: _budget(line, step, p)) for percent in percents}

    def _percents(self, setting: Setting, step: str) -> list[str]:
        lines = [line for key, line in self.known.items() if key.setting == str(setting) and key.step.startswith(step)]
        return list(dict.fromkeys(percent for line in lines for percent in line["budgets"]))

    def _gathered(self, setting: Setting, of: Any) -> dict[str, dict[int, dict[str, Any]]]:
        found: dict[str, dict[int, dict[str, Any]]] = defaultdict(dict)
        for key, line in self.known.items():
            if key.setting == str(setting):
                for name, measured in of(line).items():
                    found[name][key.seed] = measured
        return dict(found)


def _budget(line: dict[str, Any], step: str, percent: str) -> dict[str, Any]:
    return line["budgets"].get(percent, {}) if line["step"].startswith(step) else {}


def _key(line: dict[str, Any]) -> Key:
    return Key(line["setting"], line["seed"], line["step"])
