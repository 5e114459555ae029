"""The command `frugal`: messages for people, exit code 2 and one line for what they got wrong."""

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version

from models import Ensemble, load


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        print(options.run(options))
        return 0
    except (ValueError, IndexError, OSError) as error:
        print(f"frugal: {_one_line(error)}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="frugal", description="Predict from as few paid facts as possible.")
    parser.add_argument("--version", action="version", version=f"frugal {version('frugal')}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    show = commands.add_parser(
        "show", help="what is in a model file", description="What is in a model file: its settings, prices and trees."
    )
    show.add_argument("model", metavar="FILE", help="a model.safetensors file")
    show.add_argument("--tree", type=int, metavar="N", help="print tree N, counted from 0")
    show.set_defaults(run=_show)
    return parser


def _show(options: argparse.Namespace) -> str:
    ensemble = load(options.model)
    return ensemble.text(options.tree) if options.tree is not None else _summary(ensemble)


def _summary(ensemble: Ensemble) -> str:
    lines = [
        f"{len(ensemble)} trees, {len(ensemble.flat.feature):,} nodes" + (f", grown by {ensemble.learner}" if ensemble.learner else ""),
        f"vote {ensemble.vote}, order {ensemble.order}, stop {ensemble.stop}",
        f"classes: {', '.join(map(str, ensemble.classes[:12]))}" + (", ..." if len(ensemble.classes) > 12 else ""),
        "",
        f"{'feature':24} {'kind':12} {'cost':>10} {'in group':>10}  group",
    ]
    for feature, price in zip(ensemble.schema.features, ensemble.costs.prices, strict=True):
        inside = "" if price.cost_in_group is None else f"{price.cost_in_group:,.2f}"
        unused = "" if feature.name in ensemble.used else "  (no tree asks for it)"
        lines.append(f"{feature.name:24} {feature.kind:12} {price.cost:>10,.2f} {inside:>10}  {price.group or ''}{unused}".rstrip())
    return "\n".join(lines)


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())


if __name__ == "__main__":
    sys.exit(main())
