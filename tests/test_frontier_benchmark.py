"""How benchmarks/frontier.py reads its curves, with numbers worked out by hand. Nothing here needs a rival."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.frontier_parts.comparing import difference
from benchmarks.frontier_parts.curves import Point, Reading, area, chosen, hull, read_at, stair_area, summed_up
from benchmarks.frontier_parts.lines import Key, Lines
from benchmarks.frontier_parts.report import TEN, ahead, ratio, summary
from benchmarks.frontier_parts.settings import SETTINGS, Setting


def rows(wrong: int, of: int = 10) -> np.ndarray:
    """So many wrong answers, first."""
    return np.arange(of) < wrong


def point(seen: float, missed: float, cost: float, wrong: int) -> Point:
    return Point(seen, missed, cost, rows(wrong))


def test_the_hull_leaves_out_what_two_others_mixed_are_better_than() -> None:
    assert hull([0, 1, 2, 3, 4], [10, 9, 4, 4, 2]) == [0, 2, 4]


def test_the_hull_ends_at_the_least_error() -> None:
    assert hull([0, 1, 2, 3], [0.5, 0.2, 0.1, 0.3]) == [0, 1, 2]


def test_the_hull_takes_the_better_of_two_at_one_cost_and_neither_of_equals_twice() -> None:
    assert hull([2, 0, 2, 2], [0.3, 0.5, 0.2, 0.2]) == [1, 2]


def test_points_are_chosen_on_validation_rows_alone() -> None:
    better_by_luck = point(1, 0.45, 1, wrong=0)
    assert better_by_luck not in chosen([point(0, 0.5, 0, 5), better_by_luck, point(2, 0.1, 2, 4)])


def test_between_two_points_neighbours_are_mixed() -> None:
    reading = read_at([point(0, 0.5, 4.0, wrong=1), point(0, 0.5, 0.0, wrong=5), point(0, 0.5, 8.0, wrong=0)], cost=1.0)
    assert reading.weight == 0.25
    assert reading.rows.mean() == pytest.approx(0.75 * 0.5 + 0.25 * 0.1)


@pytest.mark.parametrize(("cost", "error"), [(0.5, 0.5), (1, 0.5), (2, 0.2), (9, 0.2)])
def test_at_and_beyond_the_ends_the_end_holds(cost: float, error: float) -> None:
    assert read_at([point(0, 0, 1, 5), point(0, 0, 2, 2)], cost).rows.mean() == error


def test_the_area_is_the_mean_height_of_straight_lines() -> None:
    assert area([0, 0.5], [0.4, 0.2], start=0, end=1) == pytest.approx(0.25)  # .3 on the way down, then .2
    assert area([1, 0], [0, 1], start=0.25, end=0.75) == pytest.approx(0.5)  # in any order
    assert area([0.0], [0.3]) == pytest.approx(0.3)


def test_the_area_of_a_staircase_holds_each_error_up_to_the_next_aim() -> None:
    assert stair_area([0, 0.5], [0.4, 0.2], start=0, end=1) == pytest.approx(0.3)
    assert stair_area([0.01, 0.255, 0.5], [0.4, 0.2, 0.1]) == pytest.approx(0.3)


def test_a_reading_survives_being_written() -> None:
    reading = Reading(rows(3, of=13), rows(1, of=13), 0.25)
    again = Reading.of(reading.as_json())
    assert again.weight == 0.25
    assert (again.rows == reading.rows).all()
    assert reading.as_json()["error"] == pytest.approx((0.75 * 3 + 0.25) / 13, abs=1e-6)


def test_the_standard_error_of_one_seed_comes_from_pairs_of_rows() -> None:
    found = difference([Reading.of_one(rows(3))], [Reading.of_one(rows(1))])  # the same but in 2 rows of 10
    assert found.mean == pytest.approx(0.2)
    assert found.error == pytest.approx((0.2 * 0.8 / 10) ** 0.5)
    assert not found.behind


def test_seeds_that_disagree_widen_the_standard_error() -> None:
    ours = [Reading.of_one(rows(60, of=100)), Reading.of_one(rows(0, of=100))]
    theirs = [Reading.of_one(rows(0, of=100))] * 2
    found = difference(ours, theirs)
    assert found.mean == pytest.approx(0.3)
    assert found.error == pytest.approx(0.3)  # .6 and 0: deviation .42, by the root of 2
    assert difference(ours[:1], theirs[:1]).behind


def line(error: int, level: float) -> dict[str, object]:
    return summed_up([Point(0, 0, 0, rows(error, of=100))], everything=1.0) | {"area": level}


def test_areas_are_compared_with_the_best_anchor_of_each_setting() -> None:
    settings = [
        {"ours": {0: line(1, 0.1)}, "cegb ten": {0: line(1, 0.2)}, "rf": {0: line(1, 0.4)}},
        {"ours": {0: line(1, 0.2)}, "cegb ten": {0: line(1, 0.5)}, "rf": {0: line(1, 0.1)}},
        {"ours": {0: line(1, 0.2)}, "rf": {0: line(1, 0.1)}},  # not all anchors yet: it does not count
    ]
    assert ratio(settings, "ours", TEN) == 1.0  # of 1/2 and 2


def test_a_cell_counts_once_however_many_anchors_are_ahead_in_it() -> None:
    cell = {name: {0: Reading.of_one(rows(wrong, of=100)).as_json()} for name, wrong in {"ours": 50, "rf": 1, "cegb ten": 2}.items()}
    even = cell | {"rf": cell["ours"], "cegb ten": cell["ours"]}
    found = ahead({"magic:rand": {"10": cell, "25": even}}, "ours", TEN)
    assert found["cells"] == 2
    assert found["an anchor is ahead"] == 0.5
    assert found["where"] == ["magic:rand 10 % cegb ten", "magic:rand 10 % rf"]


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    path, setting = tmp_path / "lines.jsonl", Setting.of("magic:rand")
    lines = Lines(path, ordinal=False)
    lines.add(Key(str(setting), 0, "ours"), {"rivals": {"ours": line(5, 0.3)}})
    lines.add(Key(str(setting), 0, "ours"), {"rivals": {"ours": line(5, 0.2)}})
    again = Lines(path, ordinal=False)
    assert Key("magic:rand", 0, "ours") in again
    assert again.rivals(setting)["ours"][0]["area"] == 0.2  # the later one
    assert Key("magic:rand", 0, "ours") not in Lines(path, ordinal=True)
    assert summary(again, [setting])["settings"] == 1


def test_settings_are_told_apart_by_table_and_prices() -> None:
    assert len(set(SETTINGS)) == 23
    assert Setting.of("heart_cleveland:turney") == Setting.of("heart:turney")
    prices = Setting.of("magic:rand").prices([f"x{i}" for i in range(100)], Path())
    assert {price.cost for price in prices.prices} == set(range(1, 11))
    dear = [price.cost for price in Setting.of("magic:fifty").prices(["a", "b", "c", "d", "e", "f"], Path()).prices]
    assert sorted(dear) == [1, 1, 1, 1, 50, 50]
