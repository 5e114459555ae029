"""The learners' parameters as tables for docs/learners.md, between its markers: `make docs` writes them anew, a test compares.

python -m frugal.models.learners.describing docs/learners.md
"""

import re
import sys
from pathlib import Path

from frugal.models.learners import LEARNERS
from frugal.models.learners.estimator import Learner
from frugal.models.learners.parameters import (
    Aside,
    Choice,
    ClassWeights,
    Columns,
    Directions,
    Flag,
    Grid,
    Kind,
    Names,
    Number,
    NumberOr,
    Parameter,
    Terms,
    Whole,
    parameters_of,
)

BLOCK = re.compile(r"(<!-- parameters of ([a-z0-9-]+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def rewritten(page: str) -> str:
    """The page with every block between markers as the learners are declared now."""
    return BLOCK.sub(lambda found: found[1] + table(LEARNERS[found[2]]) + found[3], page)


def table(kind: type[Learner]) -> str:
    lines = ["| parameter | default | may be | what |", "|---|---|---|---|", *map(_line, parameters_of(kind))]
    return "\n".join(lines) + "\n"


def _line(each: Parameter) -> str:
    return f"| `{each.name}` | `{each.default!r}` | {allowed(each.kind)} | {each.text} |"


def allowed(kind: Kind) -> str:
    """What a parameter may be, in words."""
    match kind:
        case Choice(words):
            return ", ".join(f'"{word}"' for word in words)
        case Grid(each):
            return f"{allowed(each)}, or a list of such"
        case Flag() | Number() | NumberOr() | Whole() | Directions() | ClassWeights() | Names():
            return f"{kind.wrong(())}"
        case Terms():
            return "a list of pairs, or None"
        case Columns():
            return "names or positions of columns, or None"
        case Aside(text):
            return text


def main() -> None:
    path = Path(sys.argv[1])
    path.write_text(rewritten(path.read_text()))


if __name__ == "__main__":
    main()
