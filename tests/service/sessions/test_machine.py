"""Sessions against their naive twin: whatever a client does, in whatever order, both say the same, and the tables hold what was said."""

import itertools
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any
from uuid import UUID

import httpx
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from frugal.models import Ask, CostModel, Feature, Leaf, Price, Schema, Split, decide
from frugal.service.config import Settings
from tests import strategies
from tests.databases import rows
from tests.naive.deciding import Model
from tests.naive.sessions import Reply, Sessions, situation, used
from tests.service.conftest import publish
from tests.serving import serving

Body = dict[str, Any]
Sent = tuple[int, Body]  # the number of a session, and answers for it
Place = tuple[int, str]  # the number of a session, and a feature
BUDGETS = [None, None, 0, 0.3, 1, 2.5, 10]
NO_FLOAT = 2**53 + 1  # the first whole number that no float is
NOT_MONEY = [-1, True, "5", 0.1234567]
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


@pytest.mark.timeout(3000)  # where it fails, the shortest way there is looked for
def test_sessions_do_what_their_naive_twin_does(database_url: str) -> None:
    """On PostgreSQL with two servers by turns, so that each finds sessions as the other left them."""
    servers, share = (1, 3) if database_url.startswith("sqlite") else (2, 8)  # a look into the tables costs less on SQLite
    with ExitStack() as stack:
        clients = [stack.enter_context(serving(Settings(database=database_url))) for _ in range(servers)]
        run_state_machine_as_test(
            lambda: Machine(clients, database_url),
            settings=settings(max_examples=settings.default.max_examples // share, stateful_step_count=50),
        )


def test_an_answer_sent_twice_is_told_the_same_twice(client: httpx.Client) -> None:
    publish(client, "ward", strategies.ensemble_of(ward()))
    id = client.post("/v1/sessions", json={"model": "ward"}).json()["id"]
    codes = [client.post(f"/v1/sessions/{id}/answers", json={"feature": "f4", "value": 1}).status_code for _ in range(2)]
    assert codes[0] == codes[1]


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
        node = Split(name, [2, 3], [Leaf([3, 1]), node], **how)
    return node


MODELS = st.one_of(st.builds(ward), strategies.models().filter(lambda model: len(used(model)) > 1))


def any_answer(feature: Feature, statuses: Sequence[str | None] = (None, None, None, "pending", "unavailable")) -> st.SearchStrategy[Body]:
    """An answer that a version takes; the status None is a value."""
    values = strategies.values_of(feature, missing=False)
    said = (values if feature.categories else mostly(values, st.just(NO_FLOAT))).map(
        lambda value: {"feature": feature.name, "value": value}
    )
    return st.sampled_from(statuses).flatmap(lambda status: st.just({"feature": feature.name, "status": status}) if status else said)


def answers(model: Model) -> st.SearchStrategy[Body]:
    return st.sampled_from([feature for feature in model.schema.features if feature.name in used(model)]).flatmap(any_answer)


def wrong_answers(model: Model) -> st.SearchStrategy[Body]:
    """Answers of the right shape with a value that is mostly wrong, or for a feature that is unknown or unused."""
    wrong = st.sampled_from(model.schema.features).flatmap(
        lambda feature: wrong_values(feature).map(lambda value: {"feature": feature.name, "value": value})
    )
    foreign = st.sampled_from(["nose", "F0", " f0", *sorted(set(model.schema.names) - used(model))])
    said = st.sampled_from([{"value": 1}, {"status": "pending"}, {"status": "unavailable"}])
    return st.one_of(wrong, st.builds(lambda name, what: {"feature": name} | what, foreign, said))


def wrong_values(feature: Feature) -> st.SearchStrategy[Any]:
    return st.sampled_from(["", "nine", "0", 9, 0, 1, -0.5, True] if feature.categories else ["", "1", True, False])


def batches(model: Model) -> st.SearchStrategy[Body]:
    """One or several answers, some of them wrong, now and then with a feature named twice."""
    mixed = st.one_of(answers(model), wrong_answers(model))
    several = st.one_of(
        st.lists(mixed, max_size=4, unique_by=lambda item: item["feature"]), st.lists(answers(model), min_size=2, max_size=3)
    )
    return st.one_of(answers(model), several.map(lambda items: {"answers": items}))


def knowns(model: Model) -> st.SearchStrategy[Any]:
    """What a client may know at an opening: values, null for unavailable, anything where no tree asks; and now and then what is wrong."""
    anything = {
        feature.name: strategies.values_of(feature) if feature.name in used(model) else st.sampled_from(["?", 1, None])
        for feature in model.schema.features
    }
    some = st.fixed_dictionaries({}, optional=anything)
    wrong = wrong_answers(model).map(lambda item: {item["feature"]: item.get("value")})
    return mostly(some, st.one_of(st.none(), wrong))


def budgets(model: Model) -> st.SearchStrategy[Any]:
    """Now and then just what a feature costs."""
    return st.sampled_from(BUDGETS + [price.cost for price in model.costs.prices])


def drawn(strategy: Callable[["Machine"], st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """A strategy that depends on what the running example has come to."""
    return st.runner().flatmap(strategy)


def of_model(strategy: Callable[[Model], st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    return drawn(lambda machine: strategy(machine.twin.model))


def mostly(usual: st.SearchStrategy[Any], other: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Seven times in eight the usual; `one_of` gives every one of its strategies the same chance."""
    return st.integers(0, 7).flatmap(lambda n: other if n == 7 else usual)


def frontiers() -> st.SearchStrategy[Any]:
    """No operating points, or some by rising cost, of which the first asks for nothing that costs anything."""
    confidence, cap = st.sampled_from([0.507, 0.753, 0.9, 1.0]), st.sampled_from([None, 0.0, 0.3, 1.0, 2.5])
    first = st.just({"cost": 0.0, "error": 0.5, "log_loss": 0.7, "confidence": 1.0, "cap": 0.0, "early": 1.0})
    later = st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.3]), confidence, cap), max_size=3).map(
        lambda found: [
            {"cost": 0.5 * i, "error": error, "log_loss": 0.5, "confidence": sure, "cap": most, "early": 0.5}
            for i, (error, sure, most) in enumerate(found, 1)
        ]
    )
    points = st.tuples(first, later).map(lambda parts: [parts[0], *parts[1]])
    return st.one_of(
        st.none(),
        points.flatmap(lambda found: st.fixed_dictionaries({"points": st.just(found), "default": st.integers(0, len(found) - 1)})),
    )


WHO = drawn(lambda machine: st.integers(0, len(machine.ids) - 1))
WRONG_OPENINGS = st.sampled_from([{"model": "nobody"}, *({name: amount} for name in ("budget", "aim") for amount in NOT_MONEY)])
RIGHT_OPENINGS = st.fixed_dictionaries(
    {"budget": of_model(budgets)},
    optional={
        "known": of_model(knowns),
        "seed": st.sampled_from([0, 7]),
        "reference": st.sampled_from([None, "case 17", "дело № 17"]),
    },
)
AIMS = st.sampled_from([0, 0.3, 0.5, 1, 1.2, 100]).map(lambda aim: {"aim": aim})
CONFIDENCES = st.sampled_from([0.6, 0.75, 1]).map(lambda confidence: {"confidence": confidence})
WAYS_TO_STOP = mostly(st.one_of(st.just({}), AIMS, CONFIDENCES), st.just({"aim": 1, "confidence": 0.6}))
OPENINGS = mostly(st.tuples(RIGHT_OPENINGS, WAYS_TO_STOP).map(lambda parts: parts[0] | parts[1]), WRONG_OPENINGS)


class Machine(RuleBasedStateMachine):
    """One model and one owner; every example begins without sessions. Sessions go by their number in `ids`, deleted ones too."""

    published = itertools.count()

    def __init__(self, clients: Sequence[httpx.Client], url: str) -> None:
        super().__init__()
        self.clients, self.url = itertools.cycle(clients), url
        self.ids: list[str] = []
        self.opened: list[tuple[Body, str]] = []  # openings with a key
        self.sent: list[Sent] = []
        self.seen: dict[tuple[str, int], Body] = {}  # sessions as they were shown, by id and revision

    @initialize(model=MODELS, frontier=frontiers(), budget=st.sampled_from(BUDGETS))
    def publish_a_model_and_open_a_session(self, model: Model, frontier: Body | None, budget: float | None) -> None:
        self.name = f"m{next(self.published)}"
        self.ensemble = strategies.ensemble_of(model, frontier=frontier)
        self.twin = Sessions(self.name, model, frontier)
        publish(self.client, self.name, self.ensemble)
        self._open({"model": self.name, "budget": budget}, None)

    def teardown(self) -> None:
        for (id,) in rows(self.url, "SELECT id FROM sessions"):
            self.client.delete(f"/v1/sessions/{UUID(str(id))}")

    @property
    def client(self) -> httpx.Client:
        """That of the server whose turn it is."""
        return next(self.clients)

    # What a client does

    @precondition(lambda self: len(self.running()) < 3)
    @rule(body=OPENINGS, key=st.sampled_from([None, None, "one", "two"]))
    def open(self, body: Body, key: str | None) -> None:
        self._open({"model": self.name} | body, key)

    @precondition(lambda self: self.opened)
    @rule(opening=drawn(lambda machine: st.sampled_from(machine.opened)), change=st.sampled_from([{}, {}, {"budget": 5.5}, {"seed": 9}]))
    def open_again(self, opening: tuple[Body, str], change: Body) -> None:
        body, key = opening
        self._open(body | change, key)

    @precondition(lambda self: self.asked())
    @rule(step=drawn(lambda machine: machine.any_answer_to(machine.asked())))
    def answer_what_is_asked(self, step: Sent) -> None:
        self._answer(*step)

    @precondition(lambda self: self.asked())
    @rule(place=drawn(lambda machine: st.sampled_from(machine.asked())))
    def order_what_is_asked(self, place: Place) -> None:
        who, name = place
        self._answer(who, {"feature": name, "status": "pending"})

    @precondition(lambda self: self.stored("pending"))
    @rule(step=drawn(lambda machine: machine.any_answer_to(machine.stored("pending"), (None, "unavailable"))))
    def answer_what_is_pending(self, step: Sent) -> None:
        self._answer(*step)

    @precondition(lambda self: self.stored())
    @rule(step=drawn(lambda machine: machine.any_answer_to(machine.stored())))
    def answer_what_is_answered(self, step: Sent) -> None:
        self._answer(*step)

    @precondition(lambda self: self.unanswered())
    @rule(step=drawn(lambda machine: machine.any_answer_to(machine.unanswered())))
    def answer_unasked(self, step: Sent) -> None:
        self._answer(*step)

    @precondition(lambda self: self.dear())
    @rule(step=drawn(lambda machine: machine.any_answer_to(machine.dear())))
    def answer_at_the_budget_or_beyond(self, step: Sent) -> None:
        self._answer(*step)

    @precondition(lambda self: self.running())
    @rule(step=drawn(lambda machine: st.sampled_from(machine.running()).flatmap(machine.any_answers)))
    def answer_several(self, step: Sent) -> None:
        self._answer(*step)

    @rule(who=WHO, body=of_model(batches))
    def answer_anything(self, who: int, body: Body) -> None:
        self._answer(who, body)

    @rule(who=WHO, body=st.one_of(of_model(wrong_answers), st.sampled_from(SHAPELESS)))
    def answer_wrongly(self, who: int, body: Any) -> None:
        self._answer(who, body)

    @precondition(lambda self: self.sent)
    @rule(step=drawn(lambda machine: st.sampled_from(machine.sent)), as_floats=st.booleans())
    def resend(self, step: Sent, as_floats: bool) -> None:
        who, body = step
        self._answer(who, with_floats(body) if as_floats else body)

    @rule(who=WHO, how=st.sampled_from(["read", "read", "finish", "delete"]))
    def look_or_end(self, who: int, how: str) -> None:
        id, url = self.ids[who], f"/v1/sessions/{self.ids[who]}"
        if how == "read":
            self.compare(self.client.get(url), self.twin.read(id))
        elif how == "finish":
            self.compare(self.client.post(f"{url}/finish"), self.twin.finish(id))
        else:
            self.compare(self.client.delete(url), self.twin.delete(id))

    @rule(limit=st.sampled_from([2, 20]), status=st.sampled_from([None, None, "open", "waiting", "done", "expired"]))
    def list_page_by_page(self, limit: int, status: str | None) -> None:
        cursor = None
        for _ in range(len(self.ids) + 1):
            wanted = {"limit": limit, "cursor": cursor, "status": status}
            reply = self.client.get("/v1/sessions", params={name: value for name, value in wanted.items() if value is not None})
            self.compare(reply, self.twin.listed(limit, cursor, status))
            cursor = reply.json()["next"]
            if cursor is None:
                return
        pytest.fail("the pages have no end")

    # What the rules choose from

    def asked(self) -> list[Place]:
        return [(who, session["ask"][0]) for who, session in self._sessions() if session["ask"]]

    def stored(self, *status: str) -> list[Place]:
        return [
            (who, name)
            for who, session in self._sessions()
            for name, line in session["answers"].items()
            if not status or line["status"] in status
        ]

    def running(self) -> list[int]:
        return [who for who, session in self._sessions() if session["status"] != "done"]

    def unanswered(self) -> list[Place]:
        return [(who, name) for who in self.running() for name in sorted(used(self.twin.model) - set(self._session(who)["answers"]))]

    def dear(self) -> list[Place]:
        return [(who, name) for who, name in self.unanswered() if self._takes_all(self._session(who), name)]

    def any_answer_to(self, places: list[Place], *statuses: Sequence[str | None]) -> st.SearchStrategy[Sent]:
        schema = self.twin.model.schema
        return st.sampled_from(places).flatmap(lambda place: st.tuples(st.just(place[0]), any_answer(schema[place[1]], *statuses)))

    def any_answers(self, who: int) -> st.SearchStrategy[Sent]:
        """Several answers that are mostly new."""
        schema, stored = self.twin.model.schema, self._session(who)["answers"]
        names = sorted(used(self.twin.model), key=lambda name: (name in stored, name))
        some = st.lists(st.sampled_from(names[:4]), min_size=2, max_size=4, unique=True) if len(names) > 1 else st.just(names)
        items = some.flatmap(lambda chosen: st.tuples(*(any_answer(schema[name], (None, "pending", "unavailable")) for name in chosen)))
        return items.map(lambda several: (who, {"answers": list(several)}))

    def _session(self, who: int) -> Body:
        return self.twin.sessions[self.ids[who]]

    def _sessions(self) -> list[tuple[int, Body]]:
        return [(who, self.twin.sessions[id]) for who, id in enumerate(self.ids) if id in self.twin.sessions]

    def _takes_all(self, session: Body, name: str) -> bool:
        (cost,) = self.twin.prices(session["answers"], [{"feature": name}])
        return session["budget"] is not None and cost >= session["budget"] - session["spent"]

    # What both say of it

    def _open(self, body: Body, key: str | None) -> None:
        headers = {} if key is None else {"Idempotency-Key": f"{self.name}-{key}"}
        reply = self.client.post("/v1/sessions", json=body, headers=headers)
        id = reply.json().get("id")
        expected = self.twin.open(body, key, id)
        if expected.status == 201:
            assert reply.headers.get("location") == f"/v1/sessions/{id}"
            assert expected.replayed == (id in self.ids)
            self.ids += [] if expected.replayed else [id]
        if key is not None and expected.status != 422:
            self.opened.append((body, key))
        self.compare(reply, expected)

    def _answer(self, who: int, body: Any) -> None:
        id = self.ids[who]
        self.sent.append((who, body))
        self.compare(self.client.post(f"/v1/sessions/{id}/answers", json=body), self.twin.answer(id, body))

    def compare(self, reply: httpx.Response, expected: Reply) -> None:
        found = reply.json() if reply.content else None
        problem = found["type"].removeprefix("urn:frugal:problem:") if reply.is_error else None
        replayed = reply.headers.get("idempotent-replayed") == "true"
        assert (reply.status_code, problem, replayed) == (expected.status, expected.problem, expected.replayed), found
        if expected.problem:
            assert (expected.body or {}).items() <= found.items()
        elif expected.body is None:
            assert found is None
        elif "items" in expected.body:
            assert found["next"] == expected.body["next"]
            for shown, twin in zip(found["items"], expected.body["items"], strict=True):
                self.compare_sessions(shown, twin)
        else:
            self.compare_sessions(found, expected.body)

    def compare_sessions(self, shown: Body, expected: Body) -> None:
        """Equal but for times and why it asks, which is `decide`'s own; at one revision a session is always shown alike, times and all."""
        assert without_times(shown) == roughly(expected)
        assert shown["created_at"] <= shown["updated_at"] < shown["expires_at"]
        assert shown == self.seen.setdefault((shown["id"], shown["revision"]), shown)
        session = self.twin.sessions[shown["id"]]
        if shown["ask"] and session["revision"] == shown["revision"]:
            decision = decide(self.ensemble, **situation(session))
            assert isinstance(decision, Ask)
            assert shown["ask"]["why"] == decision.why

    @invariant()
    def the_tables_hold_what_was_said(self) -> None:
        found = {}
        for id, status, revision, budget, spent, charged, lines in rows(self.url, TABLES):
            assert spent == charged
            assert budget is None or spent <= budget
            found[str(UUID(str(id)))] = status, revision, budget, spent, lines
        assert found == {
            id: (session["status"], session["revision"], session["budget"], session["spent"], len(session["answers"]))
            for id, session in self.twin.sessions.items()
        }


def without_times(shown: Body) -> Body:
    left = {name: value for name, value in shown.items() if name not in ("created_at", "updated_at", "expires_at")}
    left["answers"] = [{name: value for name, value in line.items() if name != "at"} for line in shown["answers"]]
    left["ask"] = shown["ask"] and {name: value for name, value in shown["ask"].items() if name != "why"}
    return left


def roughly(expected: Body) -> Body:
    """The twin's chances are exact fractions made floats, the service's are sums of floats."""
    said = expected["prediction"]
    close = {"probabilities": pytest.approx(said["probabilities"], rel=1e-7, abs=1e-11)}  # a label that is put first leads by a hair
    return expected | {"prediction": said | close | {"votes": pytest.approx(said["votes"], rel=1e-12, abs=1e-12)}}


def with_floats(body: Any) -> Any:
    """The same numbers, written with a decimal point."""
    if isinstance(body, dict):
        return {name: with_floats(value) for name, value in body.items()}
    if isinstance(body, list):
        return [with_floats(value) for value in body]
    return float(body) if type(body) is int else body
