"""Training from Python, against a real server that really trains."""

import hashlib
import os
import socket
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO

import httpx
import pytest

from frugal.service.client import Client, ClientError, Problem, Unreachable
from frugal.service.config import Settings
from tests.databases import fresh_sqlite
from tests.service.client.wires import Relay, quick, relayed, scripted
from tests.serving import problem, serving

HEART = Path(__file__).parents[3] / "examples" / "heart" / "heart.csv"
LONG = {"max_trees": 1000, "alpha": list(range(50))}  # a minute or more, unless it is cancelled
MB = 1 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with fresh_sqlite(tmp_path_factory.mktemp("training")) as url, serving(Settings(database=url)) as server:
        with Client(str(server.base_url)) as client:
            client.push_dataset("heart", HEART, {"age": 1, "thal": {"cost": 102.9, "group": "stress", "cost_in_group": 1}})
        yield server
        server.app.state.stopping = True  # type: ignore[attr-defined] - lets go of streams that a failed test has left


@pytest.fixture
def client(server: httpx.Client) -> Iterator[Client]:
    with Client(str(server.base_url)) as client:
        yield client


@pytest.fixture
def relay(server: httpx.Client) -> Iterator[Relay]:
    with relayed(server.base_url) as relay:
        yield relay


# Data sets


def test_a_table_is_a_path_bytes_or_a_file_and_the_same_again_is_no_harm(client):
    first = client.push_dataset("forms", HEART)
    assert (first["rows"], first["bytes"], len(first["columns"])) == (303, HEART.stat().st_size, 14)
    with open(HEART, "rb") as file:
        for table in (str(HEART), HEART.read_bytes(), file):
            assert client.push_dataset("forms", table) == first
    assert client.dataset("forms") == first
    assert [found["name"] for found in client.datasets()] == ["forms", "heart"]
    with pytest.raises(Problem) as other:
        client.push_dataset("forms", b"a,b\n1,x\n2,y\n")
    assert other.value.slug == "dataset-exists"
    client.delete_dataset("forms")
    with pytest.raises(Problem) as gone:
        client.dataset("forms")
    assert gone.value.slug == "dataset-not-found"


def test_an_open_file_is_sent_from_where_it_stands(client, tmp_path):
    (tmp_path / "t").write_bytes(b"a comment\na,b\n1,x\n2,y\n")
    with open(tmp_path / "t", "rb") as file:
        file.readline()
        assert client.push_dataset("rest", file)["bytes"] == 12
    client.delete_dataset("rest")


def test_what_is_no_table_is_told(client):
    for wrong in ({"a": [1]}, 7, open(HEART)):  # noqa: SIM115 - closed below
        with pytest.raises(TypeError, match="a table is a path, bytes or a file that is open for bytes, not"):
            client.push_dataset("wrong", wrong)
        getattr(wrong, "close", int)()
    with pytest.raises(FileNotFoundError):
        client.push_dataset("wrong", "none.csv")
    with pytest.raises(Problem, match="Row 3 has") as refused:
        client.push_dataset("wrong", b"a,b\n1,2\n3\n" + b"1,2\n" * 2_000_000)  # told before all of it was sent
    assert (refused.value.slug, refused.value.body["row"]) == ("bad-table", 3)


def test_a_table_is_sent_with_choices(client):
    data = b"id,age,size\nA,31,7\nB,?,NA\nC,old,9\n"
    stored = client.push_dataset("chosen", data, {"id": 3, "age": 2}, drop=["id"], numeric="age", missing=("NA", "?"))
    told = [(column["name"], column["kind"], column["missing"], column["cost"]) for column in stored["columns"]]
    assert told == [("age", "numeric", 2, 2), ("size", "numeric", 1, 1)]
    assert stored["warnings"] == ["'age': 1 cell is no number and taken as missing: 1 value (row 4)"]
    with pytest.raises(Problem, match="numeric: name 1 of 1 is no column of the table"):
        client.push_dataset("wrong", data, numeric=["weight"])
    client.delete_dataset("chosen")


def test_prices_are_set_with_the_table_and_later(client):
    costs = {column["name"]: column["cost"] for column in client.dataset("heart")["columns"]}
    assert (costs["age"], costs["thal"], costs["vessels"]) == (1.0, 102.9, 1.0)
    client.push_dataset("priced", HEART)
    changed = client.set_costs("priced", {"vessels": 100.9})
    assert {column["name"]: column["cost"] for column in changed["columns"]}["vessels"] == 100.9
    with pytest.raises(Problem, match="no column of this name; it has 'age'"):
        client.set_costs("priced", {"foot": 1})
    client.delete_dataset("priced")


def test_a_price_list_too_long_for_an_address_is_set_all_the_same(client):
    names = [f"feature_{i:04}" for i in range(900)]
    table = "\n".join([",".join(names), *(",".join(str((i * row) % 7) for i in range(900)) for row in (1, 2, 3))]).encode()
    costs = {name: {"cost": i, "question": f"What is number {i}?"} for i, name in enumerate(names)}
    for _ in range(2):
        stored = client.push_dataset("wide", table, costs)
        assert [column["cost"] for column in stored["columns"]] == list(range(900))
    client.delete_dataset("wide")
    stored = client.push_dataset("wide", table, costs, drop=["feature_0000,feature_0001", "feature_0002"])
    assert [column["cost"] for column in stored["columns"]] == list(range(3, 900))
    client.delete_dataset("wide")


def test_pushing_and_deleting_survive_a_lost_reply(server, relay):
    with quick(server, url=relay.url) as client:
        relay.lose = 2
        assert client.push_dataset("lossy", HEART, {"age": 3})["rows"] == 303
        relay.lose = 1
        client.delete_dataset("lossy")
        assert relay.lost == 3
        assert [found["name"] for found in client.datasets()] == ["heart"]


def test_a_pipe_is_sent_once(server, relay):
    with quick(server, url=relay.url) as client:
        with pipe(HEART.read_bytes()) as table:
            assert client.push_dataset("piped", table)["rows"] == 303
        client.delete_dataset("piped")
        relay.lose = 1
        with pipe(HEART.read_bytes()) as table, pytest.raises(Unreachable, match="look before you send it again"):
            client.push_dataset("piped", table)
        client.delete_dataset("piped")


def pipe(data: bytes) -> IO[bytes]:
    near, far = os.pipe()

    def fill() -> None:
        with open(far, "wb") as sink:
            sink.write(data)

    threading.Thread(target=fill, daemon=True).start()
    return open(near, "rb")


def test_a_large_table_is_never_in_memory(tmp_path):
    row = b"1.25,2.5,word\n"
    with open(tmp_path / "large.csv", "wb") as file:
        file.write(b"a,b,c\n")
        for _ in range(20):
            file.write(row * (MB // len(row)))
    size = (tmp_path / "large.csv").stat().st_size
    with sink() as (url, arrived), Client(url) as client:
        tracemalloc.start()
        client.push_dataset("large", tmp_path / "large.csv")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert size > 19 * MB
    assert arrived["headers"]["content-length"] == str(size)
    assert arrived["sha256"] == hashlib.sha256((tmp_path / "large.csv").read_bytes()).hexdigest()
    assert peak < 4 * MB


class sink:  # noqa: N801 - used like a function
    """A server that takes one body of announced length and keeps nothing of it but its hash."""

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.arrived: dict = {}
        self.thread = threading.Thread(target=self._take, daemon=True)
        self.thread.start()
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}", self.arrived

    def __exit__(self, *_):
        self.thread.join(30)
        self.listener.close()

    def _take(self):
        connection, _ = self.listener.accept()
        with connection, connection.makefile("rb") as stream:
            lines = iter(lambda: stream.readline().decode().strip(), "")
            next(lines)
            headers = dict(line.lower().split(": ", 1) for line in lines)
            left, found = int(headers["content-length"]), hashlib.sha256()
            while left:
                block = stream.read(min(left, 1 << 16))
                left -= len(block)
                found.update(block)
            self.arrived.update(headers=headers, sha256=found.hexdigest())
            connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")


# Jobs


def test_a_job_from_submitting_to_predicting(client):
    assert {learner["name"] for learner in client.learners()} >= {"budget-forest", "greedy-tree"}
    asked = {
        "learner": "budget-forest",
        "params": {"max_trees": 6, "alpha": (0, 2)},
        "costs": {"age": 2},
        "seed": 3,
        "test_fraction": 0.2,
        "penalties": {"present": {"absent": 5}},
    }
    job = client.submit("heart", "disease", budget=60, publish="ward", alias="live", **asked)
    assert (job["status"], job["budget"], job["params"], job["seed"]) == ("queued", 60.0, {"max_trees": 6, "alpha": [0, 2]}, 3)
    told = []
    done = client.wait(job["id"], told.append)
    assert [event["event"] for event in told if event["event"] != "progress"] == ["queued", "running", "done"]
    assert [event["id"] for event in told] == list(range(1, len(told) + 1))
    assert (done["status"], done["model"]) == ("done", {"name": "ward", "version": 1})
    assert done["metrics"]["rows"] == 60
    assert done["curve"]
    assert client.model("ward")["aliases"] == {"live": 1}
    assert client.predict("ward@live", [{"age": 63}])["rows"][0]["label"] in ("absent", "present")
    with pytest.raises(Problem) as over:
        client.cancel_job(job["id"])
    assert over.value.slug == "job-over"


def test_by_default_the_model_is_called_as_its_data_set(client):
    job = client.submit("heart", "disease", learner="greedy-tree", alias="tree")
    assert job["publish"] == {"name": "heart", "alias": "tree"}
    assert client.wait(job["id"])["model"]["name"] == "heart"


def test_a_submission_whose_reply_is_lost_is_one_job(server, relay):
    with quick(server, url=relay.url) as client:
        before = len(list(client.jobs()))
        relay.lose = 2
        job = client.submit("heart", "disease", learner="budget-forest", params={"max_trees": 2})
        assert len(list(client.jobs())) == before + 1
        key = {"idempotency_key": "mine", "learner": "budget-forest", "params": {"max_trees": 3}}
        again = client.submit("heart", "disease", **key)
        assert client.submit("heart", "disease", **key)["id"] == again["id"] != job["id"]
        with pytest.raises(Problem) as reused:
            client.submit("heart", "disease", idempotency_key="mine")
        assert reused.value.slug == "idempotency-key-reused"
        assert client.wait(again["id"])["status"] == "done"


def test_jobs_are_listed_by_status_and_cancelled(client):
    first, second = (client.submit("heart", "disease", learner="budget-forest", params=LONG)["id"] for _ in range(2))
    with pytest.raises(Problem) as used:
        client.delete_dataset("heart")
    assert used.value.slug == "dataset-in-use"
    assert next(client.jobs("queued"))["id"] == second
    for _ in range(2):
        assert client.cancel_job(second)["status"] == "cancelled"
    assert client.cancel_job(first)["status"] == "cancelled"
    assert {job["id"] for job in client.jobs("cancelled")} >= {first, second}
    assert client.wait(first)["model"] is None
    with pytest.raises(Problem) as unknown:
        client.job("seven")
    assert unknown.value.slug == "job-not-found"


def test_a_job_that_fails_says_why(client):
    job = client.submit("heart", "disease", learner="budget-forest", params={"impurity": "polynomial", "terms": [[1.0, [1, 0]]]})
    failed = client.wait(job["id"])
    assert (failed["status"], failed["model"]) == ("failed", None)
    assert "The learner refused: the polynomial's term" in failed["failure"]


# Events


def test_events_survive_lost_connections(server, relay):
    with quick(server, url=relay.url) as client:
        job, seen = client.submit("heart", "disease", learner="budget-forest", params=LONG), []
        for event in client.events(job["id"]):
            seen.append(event)
            if len(seen) == 6:
                client.cancel_job(job["id"])
            relay.cut()
        assert [event["id"] for event in seen] == list(range(1, len(seen) + 1))
        assert seen[-1]["event"] == "cancelled"
        assert len(client.waits) >= 3
        assert list(client.events(job["id"], after=2)) == seen[2:]


def test_a_server_that_starts_anew_is_waited_for_and_the_job_goes_on(tmp_path):
    with ExitStack() as open_things:
        settings = Settings(database=open_things.enter_context(fresh_sqlite(tmp_path)))
        with serving(settings) as first:
            relay = open_things.enter_context(relayed(first.base_url))
            client = open_things.enter_context(Client(relay.url))
            client.push_dataset("heart", HEART)
            job = client.submit("heart", "disease", learner="budget-forest", params=LONG)
            events = client.events(job["id"])
            seen = [next(events), next(events), next(events)]
            first.app.state.stopping = True
        assert seen[-1]["event"] == "progress"
        with serving(settings) as second:
            relay.upstream = (second.base_url.host, second.base_url.port)
            for event in events:
                seen.append(event)
                if event["event"] == "running":
                    client.cancel_job(job["id"])
    assert [event["id"] for event in seen] == list(range(1, len(seen) + 1))
    assert [event["event"] for event in seen if event["event"] != "progress"] == ["queued", "running", "queued", "running", "cancelled"]
    assert next(event["why"] for event in seen if "why" in event) == "its worker was stopped"


STREAM = "200 OK\nContent-Type: text/event-stream\n\n"


def test_a_stream_that_ends_early_is_gone_on_with_after_its_last_event():
    replies = (
        STREAM + 'id: 1\nevent: queued\ndata: {"at": "x"}\n\n: still here\n\nid: 2\nevent: run',
        "503 Away\nRetry-After: 2",
        "504 Slow",
        STREAM + 'id: 2\nevent: failed\ndata: {"detail": "one\u2028line"}\n\nid: 3\nevent: more\ndata: {}\n\n',
    )
    heard: list[str] = []
    with scripted(*replies, heard=heard) as url, quick(None, url=url) as client:
        told = list(client.events("7"))
        assert told == [{"id": 1, "event": "queued", "at": "x"}, {"id": 2, "event": "failed", "detail": "one\u2028line"}]
        assert ["last-event-id: 1" in request.lower() for request in heard] == [False, True, True, True]
        assert client.waits[1] == 2.0


def test_a_listener_to_a_job_that_is_over_is_let_go(server, client):
    job = client.wait(client.submit("heart", "disease", learner="budget-forest", params={"max_trees": 2})["id"])
    last = list(client.events(job["id"]))[-1]["id"]
    for after in (last, last + 7):
        assert list(client.events(job["id"], after=after)) == []
        reply = server.get(f"/v1/admin/training-jobs/{job['id']}/events", headers={"Last-Event-ID": str(after)})
        assert (reply.status_code, reply.content) == (204, b"")
    problem(server.get(f"/v1/admin/training-jobs/{job['id']}/events", headers={"Last-Event-ID": "x"}), 422, "invalid-request")


def test_listening_is_given_up_when_there_is_nobody():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        with quick(None, url=f"http://127.0.0.1:{taken.getsockname()[1]}") as nobody:
            with pytest.raises(Unreachable) as never:
                list(nobody.events("7"))
            assert (never.value.sent, len(nobody.waits)) == (False, 4)


@pytest.mark.parametrize(
    ("reply", "error", "message"),
    [
        (STREAM + 'id: 1\nevent: queued\ndata: {"at": "x"}\n\n', Unreachable, "closed the stream of events before the job was over"),
        ("404 None\n\n" + '{"type": "urn:frugal:problem:job-not-found", "detail": "No."}', Problem, "No"),
        ("503 Away", Problem, "the server answered 503 Away"),
        ("200 OK\n\n<html>", ClientError, "not as a Frugal server does"),
    ],
)
def test_what_is_no_stream_of_events_is_told(reply, error, message):
    with scripted(reply) as url, Client(url, attempts=1) as client, pytest.raises(error, match=message):
        list(client.events("7", patience=0))
