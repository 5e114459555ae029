"""The table of problems in the docs is complete, and true."""

import re
from pathlib import Path

from frugal.service import errors
from frugal.service.api.problems import PREFIX
from frugal.service.errors import Problem


def kinds(of: type[Problem] = Problem) -> list[type[Problem]]:
    return [kind for child in of.__subclasses__() for kind in (child, *kinds(child))]


def test_every_problem_stands_in_the_docs() -> None:
    table = re.findall(r"^\| (\d{3}) \| `([a-z-]+)` \|", Path("docs/errors.md").read_text(), re.MULTILINE)
    abstract = {"unavailable"}
    assert sorted(table) == sorted((str(kind.status), kind.slug) for kind in kinds() if kind.slug not in abstract)
    assert PREFIX in Path("docs/errors.md").read_text()


def test_slugs_are_unique_and_have_titles() -> None:
    slugs = [kind.slug for kind in kinds()]
    assert len(set(slugs)) == len(slugs)
    assert all(kind.title and 400 <= kind.status < 600 for kind in kinds())


def test_the_tree_at_the_top_of_the_file_names_every_class() -> None:
    drawn = re.findall(r"[|`]-- (\w+)", errors.__doc__ or "")
    assert sorted(drawn) == sorted(kind.__name__ for kind in kinds())
