"""What a training came to, in words for a terminal: the same for `frugal train` and for a job on a server."""

from collections.abc import Mapping
from typing import Any

WIDTH = 24  # letters of a bar


def report(trees: int, metrics: Mapping[str, Any], costs: Mapping[str, float]) -> str:
    """Error, cost and the features most asked for, on rows that the learner never saw."""
    if "rows" not in metrics:
        return "no rows held out to measure on"
    most = [(name, share) for name, share in sorted(metrics["feature_use"].items(), key=lambda item: -item[1])[:8] if share]
    return "\n".join(
        [
            f"{trees} trees, measured on {metrics['rows']:,} rows the learner never saw",
            "",
            f"  error        {metrics['error']:.4f}   (always the commonest class: {metrics['commonest_class_error']:.4f})",
            *(
                [f"  calibration  {metrics['calibration_error']:.4f}   (error of told probabilities)"]
                if "calibration_error" in metrics
                else []
            ),
            f"  mean cost    {metrics['mean_cost']:,.2f}",
            f"  max cost     {metrics['max_cost']:,.2f}   (everything: {metrics['cost_of_everything']:,.2f})",
            *([f"  total cost   {metrics['total_cost']:,.2f}   (mean cost and mean penalty)"] if "total_cost" in metrics else []),
            *_instead(metrics),
            *_aims(metrics),
            "",
            "  asked of     feature                    cost",
            *(f"  {100 * share:7.1f} %    {name:24} {costs[name]:>8,.2f}" for name, share in most),
        ]
    )


def _instead(metrics: Mapping[str, Any]) -> list[str]:
    """What the same rows give with everything bought."""
    if "instead" not in metrics:
        return []
    found = metrics["instead"]
    return [
        f"  instead      {found['forest']:.4f} a forest, {found['boosted']:.4f} boosted trees, each with everything bought for every case"
    ]


def _aims(metrics: Mapping[str, Any]) -> list[str]:
    """What each mean cost buys, and what the best fixed set of features for the same money would."""
    if not metrics.get("aims"):
        return []
    lines = [
        f"  {row['aim']:10,.2f} {row['mean_cost']:10,.2f} {row['error']:9.4f} {row['stop_early']:11.0%} {row['fixed_set_error']:14.4f}"
        + ("   <- suggested" if row["aim"] == metrics["suggested_aim"] else "")
        for row in metrics["aims"]
    ]
    return ["", "      aim at  mean cost     error  stop early   the best fixed set of features for as much", *lines]


def drawn(fraction: float) -> str:
    """A bar.

    Examples
    --------
    >>> drawn(0.25)
    '[######                  ]'
    """
    return f"[{'#' * round(WIDTH * fraction):{WIDTH}}]"
