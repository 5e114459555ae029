"""What the lines say together: tables as in the plan, and a summary of one line."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.frontier_parts.comparing import difference
from benchmarks.frontier_parts.curves import READ_AT, Reading
from benchmarks.frontier_parts.lines import Lines
from benchmarks.frontier_parts.settings import Setting

TEN, FAIR = ("cegb ten", "rf"), ("cegb fair", "cegb filled", "catboost", "rf")  # the best of these is a setting's best anchor
SHOWN = ("rf", "cegb ten", "cegb fair", "cegb filled", "catboost", "cegb cf", "ours", "ours served")
BESIDE = {"hard": (("cegb played", "fixed set"), ("ours",)), "hand": (("by hand",), ("ours", "ours, hard"))}
Measured = dict[str, dict[int, dict[str, Any]]]


def curves_table(lines: Lines, settings: Iterable[Setting]) -> list[str]:
    """Errors at 10/25/50 % of the cost of everything; in brackets the area, relative to the best of CEGB's ten and RF."""
    rows = [f"| table, costs | seeds | {' | '.join(SHOWN)} | all features |", "|---" * (len(SHOWN) + 3) + "|"]
    for setting in settings:
        rivals = lines.rivals(setting)
        if rivals:
            base = best_area(rivals, TEN)
            cells = [_curve_cell(rivals.get(name), base) for name in SHOWN]
            rows.append(
                f"| {setting.table} {setting.costs} | {max(map(len, rivals.values()))} | {' | '.join(cells)} | {_all(lines, setting)} |"
            )
    return rows


def _curve_cell(seeds: dict[int, dict[str, Any]] | None, base: float | None) -> str:
    if not seeds:
        return ""
    errors = "/".join(_short(np.mean([one["cells"][str(percent)]["error"] for one in seeds.values()])) for percent in READ_AT)
    return errors + (f" ({area(seeds) / base:.2f})" if base else f" [{_short(area(seeds))}]")


def _all(lines: Lines, setting: Setting) -> str:
    told = [line["everything_bought"] for key, line in lines.known.items() if key.setting == str(setting) and "everything_bought" in line]
    return "/".join(_short(np.mean([one[name] for one in told])) for name in ("lightgbm", "rf")) if told else ""


def budgets_table(lines: Lines, settings: Iterable[Setting], step: str) -> list[str]:
    """Errors under each budget, a rival per column."""
    names = [name for side in BESIDE[step] for name in side]
    rows = []
    for setting in settings:
        for percent, rivals in lines.budgets(setting, step).items():
            cells = [_short(np.mean([one["error"] for one in rivals[name].values()])) if name in rivals else "" for name in names]
            rows.append(f"| {setting.table} {setting.costs} | {percent} % | {' | '.join(cells)} |")
    return [f"| table, costs | budget | {' | '.join(names)} |", "|---" * (len(names) + 2) + "|", *rows] if rows else []


def summary(lines: Lines, settings: Sequence[Setting]) -> dict[str, Any]:
    rivals = {str(setting): lines.rivals(setting) for setting in settings}
    told: dict[str, Any] = {"settings": sum(map(bool, rivals.values())), "lines": len(lines.known), **lines.mode}
    told["areas"] = {
        f"{name} / {other}": ratio(rivals.values(), name, among)
        for name in ("ours", "ours served", "cegb cf", "cegb fair", "cegb filled", "catboost", "rf")
        for other, among in {"best of ten": TEN, "best of fair": FAIR, "cegb cf": ("cegb cf",)}.items()
        if name not in among
    }
    cells = {setting: {str(p): _cell(found, str(p)) for p in READ_AT} for setting, found in rivals.items()}
    told["cells"] = {name: ahead(cells, name, (*TEN, *FAIR)) for name in ("ours", "ours served")}
    told["cost_of_aim"] = cost_of_aim(rivals)
    for step, (anchors, own) in BESIDE.items():
        budgets = {str(setting): lines.budgets(setting, step) for setting in settings}
        told[step] = {name: ahead(budgets, name, anchors) | {"errors / anchor": errors_ratio(budgets, name, anchors)} for name in own}
    return told


def area(seeds: dict[int, dict[str, Any]]) -> float:
    return float(np.mean([one["area"] for one in seeds.values()]))


def best_area(rivals: Measured, among: Sequence[str]) -> float | None:
    """The least mean area; None unless all of them were measured."""
    return min(area(rivals[name]) for name in among) if all(name in rivals for name in among) else None


def ratio(settings: Iterable[Measured], name: str, among: Sequence[str]) -> float | None:
    """The geometric mean over settings of a rival's area against the best of others, on the seeds that all of them have."""
    ratios = []
    for rivals in settings:
        if name in rivals and all(other in rivals for other in among):
            common = set.intersection(*(set(rivals[each]) for each in (name, *among)))
            same = {each: {seed: rivals[each][seed] for seed in common} for each in (name, *among)}
            if common:
                ratios.append(area(same[name]) / min(area(same[other]) for other in among))
    return _geometric(ratios)


def _cell(rivals: Measured, percent: str) -> Measured:
    return {name: {seed: one["cells"][percent] for seed, one in seeds.items()} for name, seeds in rivals.items()}


def ahead(cells: dict[str, dict[str, Measured]], ours: str, anchors: Sequence[str]) -> dict[str, Any]:
    """In how many cells some anchor is ahead by more than two standard errors, and where."""
    number, where = 0, []
    for setting, budgets in cells.items():
        for percent, rivals in budgets.items():
            there = [name for name in dict.fromkeys(anchors) if name in rivals]
            number += bool(there and ours in rivals)
            where += [f"{setting} {percent} % {name}" for name in there if ours in rivals and _behind(rivals[ours], rivals[name])]
    behind = {place.rpartition(" % ")[0] for place in where}
    return {"cells": number, "an anchor is ahead": round(len(behind) / number, 4) if number else None, "where": where}


def _behind(ours: dict[int, dict[str, Any]], theirs: dict[int, dict[str, Any]]) -> bool:
    common = sorted(set(ours) & set(theirs))
    return bool(common) and difference(*([Reading.of(one[seed]) for seed in common] for one in (ours, theirs))).behind


def errors_ratio(budgets: dict[str, dict[str, Measured]], name: str, anchors: Sequence[str]) -> dict[str, float | None]:
    """By budget, the geometric mean over settings of our error against the better anchor's."""
    ratios: dict[str, list[float]] = {}
    for by_percent in budgets.values():
        for percent, rivals in by_percent.items():
            if name in rivals and all(anchor in rivals for anchor in anchors):
                means = {each: np.mean([one["error"] for one in rivals[each].values()]) for each in (name, *anchors)}
                ratios.setdefault(percent, []).append(float((means[name] + 1e-4) / (min(means[each] for each in anchors) + 1e-4)))
    return {percent: _geometric(found) for percent, found in ratios.items()}


def cost_of_aim(rivals: dict[str, Measured]) -> dict[str, Any]:
    """Mean test cost over the aim: over all settings and aims, and where it is most above."""
    found = {
        (setting, aim): np.mean([share for one in measured["ours served"].values() for at, share, _ in one["steps"] if at == aim])
        for setting, measured in rivals.items()
        if "ours served" in measured
        for aim, *_ in next(iter(measured["ours served"].values()))["steps"]
    }
    if not found:
        return {}
    (setting, aim), most = max(found.items(), key=lambda item: item[1])
    return {"mean": round(float(np.mean(list(found.values()))), 4), "most": round(float(most), 4), "where": f"{setting} {aim:.0%}"}


def _geometric(ratios: Sequence[float]) -> float | None:
    return round(float(np.exp(np.mean(np.log(ratios)))), 4) if ratios else None


def _short(number: float) -> str:
    return f"{number:.3f}".removeprefix("0")
