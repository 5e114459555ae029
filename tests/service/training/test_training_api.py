"""Jobs over HTTP with a real child that trains, on both databases: in the server on SQLite, beside it on PostgreSQL."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from frugal.models.learners import LEARNERS
from frugal.service.config import Settings
from frugal.service.store.db import open_database
from frugal.service.training.supervising import Supervisor
from tests.databases import fresh_sqlite, rows
from tests.serving import problem, serving

HEART = (Path(__file__).parents[3] / "examples" / "heart" / "heart.csv").read_bytes()
FOREST = {"learner": "budget-forest", "params": {"max_trees": 5}}
JOB = {"dataset": "heart", "label": "disease", "budget": 60, "publish": {"name": "heart", "alias": "live"}, **FOREST}
JOBS = "/v1/admin/training-jobs"


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def trainer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server whose jobs are trained, with the heart table."""
    folder = tmp_path_factory.mktemp("trainer")
    fresh = fresh_sqlite(folder) if request.param == "sqlite" else request.getfixturevalue("postgres").fresh()
    with fresh as url:
        settings = Settings(database=url)
        worker = Worker(settings) if request.param == "postgresql" else None
        with serving(settings) as client:
            client.database_url = url  # type: ignore[attr-defined]
            client.post("/v1/admin/datasets", params={"name": "heart"}, content=HEART).raise_for_status()
            yield client
        if worker:
            worker.end()


class Worker:
    """What `frugal worker` runs, in a thread."""

    def __init__(self, settings: Settings) -> None:
        self.database = open_database(settings)
        self.supervisor = Supervisor(self.database, settings)
        self.thread = threading.Thread(target=self.supervisor.run)
        self.thread.start()

    def end(self) -> None:
        self.supervisor.stop.set()
        self.thread.join()
        self.database.close()


def submit(client: httpx.Client, **given: Any) -> dict:
    reply = client.post(JOBS, json=JOB | given)
    assert reply.status_code == 202, reply.text
    assert reply.headers["location"] == f"{JOBS}/{reply.json()['id']}"
    return reply.json()


def finished(client: httpx.Client, id: str, patience: float = 240) -> dict:
    end = time.monotonic() + patience
    while (job := client.get(f"{JOBS}/{id}").json())["status"] in ("queued", "running"):
        assert time.monotonic() < end, job
        time.sleep(0.05)
    return job


def told(client: httpx.Client, id: str, **headers: str) -> list[tuple[int, str, dict]]:
    """All events of a stream that ends by itself."""
    found = []
    with client.stream("GET", f"{JOBS}/{id}/events", headers=headers, timeout=240) as stream:
        if stream.status_code == 204:  # all was told: EventSource then comes no more
            return []
        assert stream.headers["content-type"].startswith("text/event-stream")
        for part in stream.read().decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in part.splitlines() if not line.startswith(":"))
            if fields:
                found.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
    return found


def test_from_a_table_to_a_session(trainer: httpx.Client) -> None:
    job = submit(trainer, costs={"age": 2}, seed=3)
    assert (job["status"], job["attempts"], job["progress"], job["model"]) == ("queued", 0, None, None)
    done = finished(trainer, job["id"])
    assert (done["status"], done["failure"], done["attempts"]) == ("done", None, 1)
    assert done["progress"] == {"phase": "done", "fraction": 1.0, "trees": 5, "mean_cost": done["metrics"]["mean_cost"]}
    version = trainer.get(f"/v1/models/heart/versions/{done['model']['version']}").json()
    assert version["metrics"] == done["metrics"]
    assert version["curve"] == done["curve"] != []
    assert "live" in version["aliases"]
    assert {price["feature"]: price["cost"] for price in version["costs"]}["age"] == 2
    assert done["metrics"]["rows"] == 75
    session = trainer.post("/v1/sessions", json={"model": "heart@live", "budget": 60}).json()
    assert session["model"] == done["model"]
    assert session["ask"]["feature"] in done["metrics"]["feature_use"]


def test_the_same_job_again_gives_the_same_model(trainer: httpx.Client) -> None:
    made = [finished(trainer, submit(trainer, seed=11)["id"])["model"]["version"] for _ in range(2)]
    shas = {trainer.get(f"/v1/models/heart/versions/{number}").json()["sha256"] for number in made}
    assert len(shas) == 1
    assert made[1] == made[0] + 1


def test_events_tell_all_and_can_be_gone_on_with(trainer: httpx.Client) -> None:
    id = submit(trainer, params={"max_trees": 200, "alpha": [0, 1, 2, 3]}, budget=None)["id"]
    events = told(trainer, id)  # while it trains
    assert [number for number, _, _ in events] == list(range(1, len(events) + 1))
    kinds = [kind for _, kind, _ in events]
    assert (kinds[:2], kinds[-1]) == (["queued", "running"], "done")
    assert set(kinds[2:-1]) == {"progress"}
    assert all({"phase", "fraction", "trees", "mean_cost"} <= data.keys() for _, kind, data in events if kind == "progress")
    assert events[-1][2]["model"]["name"] == "heart"
    assert told(trainer, id, **{"Last-Event-ID": "2"}) == events[2:]
    assert told(trainer, id) == events  # when it is over
    assert told(trainer, id, **{"Last-Event-ID": str(len(events))}) == []


def test_a_stream_of_a_job_that_is_over_ends(trainer: httpx.Client) -> None:
    id = submit(trainer)["id"]
    finished(trainer, id)
    assert told(trainer, id, **{"Last-Event-ID": "999"}) == []


def test_penalties_give_total_and_normalised_cost(trainer: httpx.Client) -> None:
    metrics = finished(trainer, submit(trainer, penalties={"present": {"absent": 500}, "absent": {"present": 50}})["id"])["metrics"]
    wrong = metrics["confusion"]
    paid = (wrong["present"].get("absent", 0) * 500 + wrong["absent"].get("present", 0) * 50) / metrics["rows"]
    assert metrics["total_cost"] == pytest.approx(metrics["mean_cost"] + paid)
    assert 0 < metrics["normalised_cost"] == pytest.approx(metrics["total_cost"] / metrics["standard_cost"])


def test_what_the_learner_refuses_fails_with_its_words(trainer: httpx.Client) -> None:
    job = finished(trainer, submit(trainer, params={"impurity": "polynomial", "terms": [[1.0, [1, 0]]]})["id"])
    assert (job["status"], job["attempts"], job["model"]) == ("failed", 1, None)
    assert "the polynomial's term" in job["failure"]
    assert told(trainer, job["id"])[-1][1] == "failed"


def test_cancel_ends_the_child(trainer: httpx.Client) -> None:
    versions = rows(trainer.database_url, "SELECT count(*) FROM versions")  # type: ignore[attr-defined]
    id = submit(trainer, params={"max_trees": 1000, "alpha": list(range(50))}, budget=None)["id"]
    end = time.monotonic() + 200
    while trainer.get(f"{JOBS}/{id}").json()["progress"] in (None, {}):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert trainer.post(f"{JOBS}/{id}/cancel").json()["status"] == "cancelled"
    after = submit(trainer)["id"]  # the next job is trained, so the child of this one is gone
    assert finished(trainer, after)["status"] == "done"
    assert told(trainer, id)[-1][1] == "cancelled"
    assert trainer.get(f"{JOBS}/{id}").json()["model"] is None
    assert rows(trainer.database_url, "SELECT count(*) FROM versions")[0][0] == versions[0][0] + 1  # type: ignore[attr-defined]
    problem(trainer.post(f"{JOBS}/{after}/cancel"), 409, "job-over")


def test_lists_by_status(trainer: httpx.Client) -> None:
    id = submit(trainer)["id"]
    finished(trainer, id)
    done = trainer.get(JOBS, params={"status": "done", "limit": 1}).json()
    assert [job["id"] for job in done["items"]] == [id]
    assert all(job["status"] == "failed" for job in trainer.get(JOBS, params={"status": "failed"}).json()["items"])
    assert len(trainer.get(JOBS, params={"limit": 1, "cursor": id}).json()["items"]) <= 1
    problem(trainer.get(JOBS, params={"status": "lost"}), 422, "invalid-request")
    problem(trainer.get(JOBS, params={"cursor": "x"}), 422, "invalid-request")


def test_an_idempotency_key_gives_the_first_reply_again(trainer: httpx.Client) -> None:
    headers = {"Idempotency-Key": "once"}
    priced = JOB | {"costs": {"age": 2}, "budget": 0.5}  # too little for a tree, which the learner warns of
    first = trainer.post(JOBS, json=priced, headers=headers)
    assert [text[:20] for text in first.json()["warnings"]] == ["no price for 'sex', "]
    done = finished(trainer, first.json()["id"])
    assert [text[:20] for text in done["warnings"][:2]] == ["no price for 'sex', ", "no tree fits the bud"]
    again = trainer.post(JOBS, json=priced, headers=headers)
    assert (again.status_code, again.json()) == (202, first.json())
    assert again.headers["idempotent-replayed"] == "true"
    assert again.headers["location"] == first.headers["location"]
    problem(trainer.post(JOBS, json=priced | {"seed": 9}, headers=headers), 422, "idempotency-key-reused")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dataset": "none"}, None),
        ({"dataset": "a\0b"}, None),
        ({"dataset": "Heart"}, None),
        ({"label": "illness"}, "no column of this name; it has 'age'"),
        ({"label": ""}, "label"),
        ({"learner": "forest"}, "the learners are"),
        ({"params": {"trees": 3}}, "it knows"),
        ({"params": []}, "params"),
        ({"budget": -1}, "budget"),
        ({"budget": "60"}, "budget"),
        ({"costs": {"age": 1, "nose": 1}}, "costs.#2: the data set has no column of this name; it has 'age'"),
        ({"costs": {"sex": 1, "age": -1}}, "costs.#2"),
        ({"test_fraction": 1}, "test_fraction"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"publish": {"name": "x" * 300}}, "publish.name"),
        ({"publish": {"name": "a/b"}}, "1 to 64"),
        ({"publish": {"name": "💔"}}, "1 to 64"),
        ({"publish": {}}, "publish.name"),
        ({"publish": {"name": ""}}, "publish.name: a name has 1 to 64"),
        ({"publish": {"name": "a", "alias": ""}}, "publish.alias: a name has 1 to 64"),
        ({"params": {"terms": [[1.0, [1, 1]]]}}, "belong to the impurity polynomial"),
        ({"params": {"impurity": "polynomial", "terms": [[1.0, [1]]]}}, "has 2 exponents"),
        ({"params": {"terms": []}}, "params.terms"),
        ({"test_fraction": 0.999}, "fewer than 2 to learn from"),
        ({"penalties": {"present": {"absent": -1}}}, "penalties"),
        ({"params": {"class_weight": {"ill": 5}}}, "params.class_weight: 1 of the labels that the weights name are no values of 'disease'"),
        ({"params": {"class_weight": {"present": -5}}}, "params.class_weight"),
        ({"params": {"class_weight": "even"}}, "params.class_weight"),
        ({"learner": "frontier", "params": {"learners": "budget-forest"}}, "params.learners: Input should be a valid list"),
        ({"learner": "frontier", "params": {"learners": []}}, "params.learners"),
        ({"speed": "fast"}, "no such field"),
    ],
)
def test_bad_requests_say_what_to_do(trainer: httpx.Client, change: dict, said: str | None) -> None:
    before = rows(trainer.database_url, "SELECT count(*) FROM jobs")  # type: ignore[attr-defined]
    reply = trainer.post(JOBS, json=JOB | change)
    if said is None:
        problem(reply, 404, "dataset-not-found")
    else:
        assert said in problem(reply, 422, "invalid-request")["detail"]
    assert rows(trainer.database_url, "SELECT count(*) FROM jobs") == before  # type: ignore[attr-defined]


def test_nan_is_no_budget(trainer: httpx.Client) -> None:
    body = json.dumps(JOB).replace("60", "NaN")
    reply = trainer.post(JOBS, content=body, headers={"Content-Type": "application/json"})
    assert "NaN" in problem(reply, 422, "invalid-request")["detail"]


@pytest.mark.parametrize("id", ["x", "01a1e298-3693-790e-8824-854fa4664555", "💔"])
def test_a_job_that_is_not_there(trainer: httpx.Client, id: str) -> None:
    problem(trainer.get(f"{JOBS}/{id}"), 404, "job-not-found")
    problem(trainer.get(f"{JOBS}/{id}/events"), 404, "job-not-found")
    problem(trainer.post(f"{JOBS}/{id}/cancel"), 404, "job-not-found")


def test_a_data_set_under_a_job_stays(trainer: httpx.Client) -> None:
    id = submit(trainer, params={"max_trees": 1000, "alpha": list(range(50))}, budget=None)["id"]
    problem(trainer.delete("/v1/admin/datasets/heart"), 409, "dataset-in-use")
    trainer.post(f"{JOBS}/{id}/cancel")


def test_learners_say_their_parameters(trainer: httpx.Client) -> None:
    items = trainer.get("/v1/admin/learners").json()["items"]
    assert [item["name"] for item in items] == list(LEARNERS)
    parameters = {item["name"]: item["parameters"]["properties"] for item in items}
    assert parameters["budget-forest"]["max_trees"]["default"] == 40
    assert parameters["frontier"]["learners"]["default"] == ["priced-boosting"]
    assert parameters["frontier"]["learners"]["type"] == "array"


def test_without_a_learner_the_model_serves_every_budget(trainer: httpx.Client) -> None:
    job = {name: value for name, value in JOB.items() if name not in FOREST}
    reply = trainer.post(JOBS, json=job | {"publish": {"name": "every"}})
    assert (reply.status_code, reply.json()["learner"]) == (202, "frontier")
    done = finished(trainer, reply.json()["id"])
    assert (done["status"], done["failure"]) == ("done", None)
    frontier = trainer.get("/v1/models/every/versions/1").json()["frontier"]
    assert frontier["points"][0]["cost"] == 0
    assert frontier["points"][frontier["default"]]["cost"] <= 60
    session = trainer.post("/v1/sessions", json={"model": "every", "aim": 20}).json()
    assert (session["aim"], session["confidence"]) == (20.0, None)


def test_cases_of_a_class_can_count_more(trainer: httpx.Client) -> None:
    said = []
    for weights in (None, {"present": 5}):
        asked = {"learner": "priced-boosting", "params": {"class_weight": weights}, "publish": {"name": "wary"}}
        done = finished(trainer, submit(trainer, **asked, budget=None)["id"])
        assert (done["status"], done["failure"], done["params"]) == ("done", None, {"class_weight": weights})
        said.append(sum(row.get("present", 0) for row in done["metrics"]["confusion"].values()))
    assert said[1] > said[0]


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_trains(trainer: httpx.Client, learner: str) -> None:
    job = finished(trainer, submit(trainer, learner=learner, params={}, budget=None)["id"])
    assert (job["status"], job["failure"]) == ("done", None)
    assert job["metrics"]["error"] < job["metrics"]["commonest_class_error"]
