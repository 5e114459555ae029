"""A picture per setting: error against cost, ours beside CEGB, a forest and fixed sets of features. Curves are means over seeds."""

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.frontier_parts.lines import Lines
from benchmarks.frontier_parts.settings import Setting

DRAWN = {"rf": "random forest", "cegb filled": "CEGB (LightGBM)", "cegb cf": "CEGB with our operating points", "ours": "ours"}
SHARES = np.linspace(0, 0.6, 121)


def draw_all(lines: Lines, settings: list[Setting], folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    for setting in settings:
        rivals = lines.rivals(setting)
        if rivals:
            _draw(setting, rivals, lines.budgets(setting, "hard"), folder / f"{setting.table}-{setting.costs}.png")


def _draw(setting: Setting, rivals: dict[str, Any], budgets: dict[str, Any], path: Path) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for name, label in DRAWN.items():
        if name in rivals:
            axes.plot(100 * SHARES, np.mean([_read(one["curve"]) for one in rivals[name].values()], axis=0), label=label)
    fixed = [one for budget in budgets.values() for one in _fixed(budget)]
    if fixed:
        axes.plot(*zip(*fixed, strict=True), "kx", label="a fixed set, refitted")
    axes.set(xlabel="mean cost, % of everything", ylabel="error", title=f"{setting.table}, costs: {setting.costs}")
    axes.legend()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _read(curve: list[list[float]]) -> np.ndarray:
    return np.interp(SHARES, *zip(*curve, strict=True))


def _fixed(budget: dict[str, Any]) -> list[tuple[float, float]]:
    """Cost and error, means over seeds."""
    seeds = budget.get("fixed set", {}).values()
    return [(100 * float(np.mean([one["cost"] for one in seeds])), float(np.mean([one["error"] for one in seeds])))] if seeds else []
