"""Sessions against their naive twin: whatever a client does, in whatever order, both say the same, and the tables hold what was said."""

import itertools
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import httpx
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, precondition, rule, run_state_machine_as_test

from models import CostModel, Ensemble, Feature, Leaf, Price, Schema, Split, decide
from service.config import Settings
from tests import strategies
from tests.databases import rows
from tests.naive.deciding import Model
from tests.naive.sessions import Reply, Sessions, misshapen, situation, used
from tests.service.conftest import publish
from tests.serving import serving

BUDGETS = [None, None, 0, 0.3, 1, 2.5, 10]
NOT_MONEY = [-1, True, "5", 0.1234567]
NOWHERE = "01890000-0000-7000-8000-000000000000"
SHAPELESS = [
    {"feature": "f0"},
    {"feature": "f0", "value": None},
    {"feature": "f0", "value": 1, "status": "pending"},
    {"feature": "f0", "status": "lost"},
    {"feature": "f0", "value": [1]},
    {"feature": "", "value": 1},
    {"feature": 0, "value": 1},
    {"value": 1},
    {"feature": "f0", "value": 1, "cost": 0},
    {"answers": []},
    {"answers": {"f0": 1}},
    {"answers": [{"feature": "f0", "value": 1}, {"feature": "f0", "value": 1}]},
    {"answers": [{"feature": "f0", "value": 1}], "feature": "f1"},
    ["f0", 1],
    {},
]
TABLES = """
SELECT s.id, s.status, s.revision, s.budget, s.spent,
       (SELECT coalesce(sum(a.cost), 0) FROM answers a WHERE a.session_id = s.id),
       (SELECT count(*) FROM answers a WHERE a.session_id = s.id)
FROM sessions s
"""


def test_sessions_do_what_their_naive_twin_does(database_url: str) -> None:
    with serving(Settings(database=database_url)) as client:
        most = settings.default.max_examples
        run_state_machine_as_test(
            lambda: Machine(client, database_url),
            settings=settings(parent=settings.default, max_examples=max(1, most // 4), stateful_step_count=40),
        )


def ward() -> Model:
    """A forest that asks for much, so that sessions on it are long: two groups, a slow feature, categories of each kind, one never used."""
    schema = Schema(
        [
            Feature("f0", "categorical", ("a", "b")),
            Feature("f1", unit="mg/dl", question="How much is it?"),
            Feature("f2"),
            Feature("f3", "categorical", (1, 2.5, "1")),
            Feature("f4", "categorical", (False, True)),
            Feature("f5"),
            Feature("idle"),
        ]
    )
    costs = CostModel(
        [
            Price("f0", 0.1),
            Price("f1", 0.7, "blood", 0.3),
            Price("f2", 0.5, "blood", 0.2),
            Price("f3", 1, "blood", 0),
            Price("f4", 2, "scan", 1.5, delayed=True),
            Price("f5", 0.000001, "scan"),
            Price("idle", 0),
        ]
    )
    trees = [chain(schema, names) for names in (["f0", "f1", "f2"], ["f3", "f4"], ["f5", "f1", "f4", "f0"], ["f2", "f3"])]
    return Model(trees, schema, costs, ["no", "yes"], "counts", "votes", "leaf", "wait", [1.0, 2.0, 0.5, 1.0])


def chain(schema: Schema, names: list[str]) -> Any:
    node: Any = Leaf([0, 2])
    for name in reversed(names):
        words = schema[name].categories
        how = {"branches": {word: int(i > 0) for i, word in enumerate(words)}} if words else {"threshold": 0.5}
        node = Split(name, [1, 1], [Leaf([3, 1]), node], **how)
    return node


MODELS = st.one_of(st.builds(ward), strategies.models().filter(lambda model: len(used(model)) > 1))


def values(feature: Feature) -> st.SearchStrategy[Any]:
    return strategies.values_of(feature, missing=False)


def wrong_values(feature: Feature) -> st.SearchStrategy[Any]:
    return st.sampled_from(["", "nine", "0", 9, -0.5, True] if feature.categories else ["", "1", True, False])


def answers(model: Model) -> st.SearchStrategy[dict[str, Any]]:
    """Answers that a version takes, of any kind."""
    asked = st.sampled_from([feature for feature in model.schema.features if feature.name in used(model)])
    said = asked.flatmap(lambda feature: values(feature).map(lambda value: {"feature": feature.name, "value": value}))
    unsaid = st.builds(lambda feature, status: {"feature": feature.name, "status": status}, asked, st.sampled_from(["pending", "unavailable"]))
    return st.one_of(said, said, unsaid)


def wrong_answers(model: Model) -> st.SearchStrategy[dict[str, Any]]:
    """Answers of the right shape that no version takes: a wrong value, or a feature that is unknown or unused."""
    known = st.sampled_from(model.schema.features)
    wrong = known.flatmap(lambda feature: wrong_values(feature).map(lambda value: {"feature": feature.name, "value": value}))
    idle = sorted(set(model.schema.names) - used(model))
    foreign = st.sampled_from(["nose", "F0", " f0", *idle])
    said = st.sampled_from([{"value": 1}, {"status": "pending"}, {"status": "unavailable"}])
    return st.one_of(wrong, st.builds(lambda name, what: {"feature": name, **what}, foreign, said))


def knowns(model: Model) -> st.SearchStrategy[Any]:
    """What may be known at an opening: raw values, nothing for unavailable, anything for what no tree uses."""
    anything = {f.name: strategies.values_of(f) if f.name in used(model) else st.sampled_from(["?", 1, None]) for f in model.schema.features}
    right = st.fixed_dictionaries({}, optional=anything)
    wrong = wrong_answers(model).map(lambda item: {item["feature"]: item.get("value")})
    return st.one_of(st.none(), st.just({}), right, right, wrong)


def of_model(strategy: Any) -> st.SearchStrategy[Any]:
    """A strategy that depends on the model of the running example."""
    return st.runner().flatmap(lambda machine: strategy(machine.twin.model))


openings = of_model(
    lambda model: st.fixed_dictionaries(
        {"budget": st.sampled_from(BUDGETS)},
        optional={
            "known": knowns(model),
            "seed": st.sampled_from([0, 7]),
            "confidence": st.sampled_from([None, 0.75, 1]),
            "reference": st.sampled_from([None, "case 17", "дело № 17"]),
        },
    )
)


class Machine(RuleBasedStateMachine):
    """One client with one model; every example begins without sessions."""

    ids = Bundle("ids")
    opened = Bundle("opened")  # bodies and keys of openings
    sent = Bundle("sent")  # ids and bodies of answers
    numbers = itertools.count()

    def __init__(self, client: httpx.Client, url: str) -> None:
        super().__init__()
        self.client, self.url = client, url
        self.bodies: dict[str, Any] = {}  # per session, the reply to its last write

    @initialize(model=MODELS)
    def publish(self, model: Model) -> None:
        self.name = f"m{next(self.numbers)}"
        self.ensemble: Ensemble = strategies.ensemble_of(model)
        self.twin = Sessions(self.name, model)
        publish(self.client, self.name, self.ensemble)

    def teardown(self) -> None:
        for (id,) in rows(self.url, "SELECT id FROM sessions"):
            assert self.client.delete(f"/v1/sessions/{UUID(str(id))}").status_code == 204

    # Opening

    @rule(targets=(ids, opened), body=openings)
    def open(self, body: dict[str, Any]) -> Any:
        return self.open_with({"model": self.name, **body}, None)[0]

    @rule(target=ids, body=openings)
    def open_one(self, body: dict[str, Any]) -> Any:
        ...


del Machine  # placeholder
