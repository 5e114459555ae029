"""The containers on a real engine, from outside: up from nothing, sessions through the proxy, everything killed once, replaced under load.

make test-compose             # Docker with Compose v2, or docker-compose 1.29
COMPOSE, DOCKER and UP name other commands and another way up, for example UP='up -d --no-build'

It works in a project of its own, so a service that runs is left alone, and prints what it saw. The first thing that is not so ends it.
"""

import contextlib
import http.client
import json
import os
import re
import shlex
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx

from frugal.client import Client
from tests.journeys.processes import ROOT, free_port
from tests.journeys.test_training import NOISE

PROJECT = "frugal-journey"
DOCKER = shlex.split(os.environ.get("DOCKER", "docker"))
COMPOSE = shlex.split(os.environ.get("COMPOSE", "docker compose"))
UP = shlex.split(os.environ.get("UP", "up -d --build"))
PORT = free_port()
URL = f"http://127.0.0.1:{PORT}"
SECRETS = (ROOT / ".env").read_text() if (ROOT / ".env").is_file() else ""  # `make test-compose` makes it; pytest only looks for doctests
KEY = "".join(re.findall(r"^FRUGAL_ADMIN_KEY=(.*)$", SECRETS, re.MULTILINE))
ENVIRONMENT = os.environ | {
    "COMPOSE_PROJECT_NAME": PROJECT,
    "PROXY_PORT": str(PORT),
    "COMPOSE": shlex.join(COMPOSE),
    "DOCKER": shlex.join(DOCKER),
}
BEARER = {"Authorization": f"Bearer {KEY}"}
STEPS = ("chest_pain", "sex")
ANSWERS = {"chest_pain": "none", "sex": "male", "age": 50, "resting_bp": 150}

KILL_A_WORKER = """
import os, pathlib
workers = [path.parent.name for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if b"spawn" + b"_main" in path.read_bytes()]
assert len(workers) == 2, workers
os.kill(int(workers[0]), 9)
"""


def main() -> None:
    compose("down", "-v", "--remove-orphans", check=False)
    try:
        for journey in (
            up_from_nothing,
            hardened,
            a_session_as_the_readme_has_it,
            hostile,
            servers_killed,
            database_killed,
            ends_by_itself,
            trained,
            replaced_under_load,
            stopped_in_peace,
        ):
            begun = time.monotonic()
            print(f"{journey.__name__.replace('_', ' ')}: {journey()} ({time.monotonic() - begun:.0f} s)", flush=True)
    except BaseException:
        print(compose("ps", check=False), compose("logs", "--no-color", "--tail", "15", check=False), sep="\n")
        raise
    finally:
        compose("down", "-v", "--remove-orphans", check=False)


# The journeys


def up_from_nothing() -> str:
    begun = time.monotonic()
    compose(*UP)
    ready()
    lines = [line for line in compose("logs", "--no-color", "api").splitlines() if "kernels:" in line]
    assert len(lines) == 3, lines  # the parent and two workers
    assert all(re.search(r"kernels: [1-9]\d* from the cache, 0 compiled", line) for line in lines), lines
    seconds = time.monotonic() - begun
    size = int(docker("image", "inspect", "-f", "{{.Size}}", "frugal:latest")) / 1e6
    return f"ready after {seconds:.1f} s, image of {size:.0f} MB, no kernel compiled"


def hardened() -> str:
    for service in ("api", "trainer", "proxy", "db"):
        about = json.loads(docker("inspect", *ids(service)))[0]
        host = about["HostConfig"]
        assert host["ReadonlyRootfs"], service
        assert host["CapDrop"] == ["ALL"], service
        assert host["SecurityOpt"] == ["no-new-privileges:true"], service
        assert host["Memory"] > 0, service
        assert host["PidsLimit"] > 0, service
        assert bool(host["PortBindings"]) == (service == "proxy"), service
    for service, uid in (("api", "10001"), ("trainer", "10001"), ("proxy", "99")):
        status = inside(service, "cat /proc/self/status; id -u; touch /opt/x /usr/x /x 2>&1 | grep -c Read-only")
        assert re.search(r"CapEff:\s+0{16}\n", status), status
        assert re.search(r"NoNewPrivs:\s+1\n", status), status
        assert status.split()[-2:] in ([uid, "3"], [uid, "2"]), status[-200:]
    assert "0 compiled" in inside("api", "python -c 'from frugal.service.warming import PARTS; print(PARTS.warm_up())'")
    assert inside("api", "python -c 'import pip' 2>&1; command -v pip gcc cc make; true").count("No module named") == 1
    return "read-only roots, no capabilities, api as 10001, proxy as 99; only the proxy is published"


def a_session_as_the_readme_has_it() -> str:
    block = re.search(r"## In containers\n.*?\n\n((?:    [^\n]*\n)+)", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block, "README.md has no section with commands"
    lines = [line[4:] for line in block[1].splitlines()]
    assert lines[0].startswith("make up"), lines
    script = "\n".join(lines[1:]).replace("127.0.0.1:8000", f"127.0.0.1:{PORT}")
    said = subprocess.run(["sh", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    session = json.loads(said[said.rindex('{"id"') :])
    assert session["status"] == "done", said
    assert session["prediction"]["final"], said
    assert httpx.post(f"{URL}/v1/sessions", json={"model": "heart"}).status_code == 401
    with Client(URL, KEY) as client:
        other = client.run("heart", lambda question: ANSWERS.get(question["feature"]), budget=60)
    assert other["status"] == "done"
    return f"{session['prediction']['label']} for {session['spent']:.2f}, reason {session['prediction']['reason']}"


def hostile() -> str:
    for path in ("/metrics", "/%6detrics", "//metrics", "/metrics/", "/v1/../metrics", "/"):
        problem(raw(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")[0], 404, "not-found")
    assert httpx.get(f"{URL}/readyz").json() == {"status": "ready"}
    for path, limit in (("/v1/sessions", 2**20), ("/v1/predict", 2**24), ("/v1/admin/models", 2**24), ("/v1/admin/datasets", 2**29)):
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Length: {limit + 1}\r\n\r\n"
        body = problem(raw(head)[0], 413, "too-large")
        assert body["limit"] == limit, body
    chunked = httpx.post(f"{URL}/v1/sessions", content=iter([b" " * 65536] * 17), headers=BEARER | {"Content-Type": "application/json"})
    assert (chunked.status_code, chunked.json()["limit"]) == (413, 2**20)
    reply, seconds = raw("GET /livez HT")
    assert reply.startswith("HTTP/1.1 408"), reply
    assert 9 < seconds < 12, seconds
    reply, body_seconds = raw(f"POST /v1/sessions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Length: 100\r\n\r\n{{")
    problem(reply, 408, "request-timeout")
    assert 9 < body_seconds < 12, body_seconds
    assert raw("NONSENSE\r\n\r\n")[0].startswith("HTTP/1.1 400")
    forged = httpx.get(f"{URL}/livez", headers={"X-Forwarded-For": "127.0.0.1", "X-Request-ID": "mine-1"})
    assert forged.headers["x-request-id"] == "mine-1"
    assert "server" not in forged.headers
    held = [socket.create_connection(("127.0.0.1", PORT)) for _ in range(300)]  # that never say anything
    assert httpx.get(f"{URL}/livez").status_code == 200
    for each in held:
        each.close()
    return f"/metrics 404, long bodies 413, slow headers cut after {seconds:.1f} s, slow bodies after {body_seconds:.1f} s"


def servers_killed() -> str:
    session = begun_session()
    compose("kill", "-s", "KILL", "api")
    meanwhile = step(session["id"], STEPS[1])
    problem_of(meanwhile, 503)
    compose(*UP)
    ready()
    assert gone_on(session["id"])
    return f"{meanwhile.status_code} with Retry-After {meanwhile.headers['retry-after']} meanwhile, then the session went on"


def database_killed() -> str:
    session = begun_session()
    compose("kill", "-s", "KILL", "db")
    seen = [step(session["id"], STEPS[1]) for _ in range(5)]
    for reply in seen:
        problem_of(reply, 503)
    begun = time.monotonic()
    compose(*UP)
    ready()
    seconds = time.monotonic() - begun
    assert gone_on(session["id"])
    told = sorted({reply.json()["type"].removeprefix("urn:frugal:problem:") for reply in seen})
    return f"503 ({', '.join(told)}) with Retry-After meanwhile; {seconds:.1f} s after the word to start it, on"


def ends_by_itself() -> str:
    """A server that dies is started again by the engine; one worker that dies, by its parent."""
    session = begun_session()
    inside("api", f"python -c '{KILL_A_WORKER}'")
    assert step(session["id"], STEPS[0]).status_code == 200
    inside("api", "python -c 'import os; os.kill(-1, 9)'", check=False)
    begun = time.monotonic()
    until(lambda: gone_on(session["id"]))
    return f"the session goes on {time.monotonic() - begun:.1f} s after its processes were killed"


def trained() -> str:
    """A table through the proxy, jobs that are watched, a trainer that is killed, two trainers at once."""
    long = {"learner": "budget-forest", "params": {"max_trees": 1000}}
    with Client(URL, KEY, timeout=300) as client:
        begun = time.monotonic()
        client.push_dataset("large", b"a,b,c\n" + b"1,2,3\n" * 10_000_000)
        uploaded = time.monotonic() - begun
        client.push_dataset("noise", NOISE)
        begun = time.monotonic()
        events: list[str] = []
        quick = client.submit("noise", "y", learner="budget-forest", params={"max_trees": 2}, publish="noise", alias="live")["id"]
        done = client.wait(quick, on_event=lambda event: events.append(event["event"]))
        published = time.monotonic() - begun
        assert done["status"] == "done", done["failure"]
        assert (events[0], events[-1]) == ("queued", "done"), events
        assert client.open("noise@live")["model"]["version"] == 1
        killed = client.submit("noise", "y", learner="budget-forest", params={"max_trees": 40})["id"]
        until(lambda: bool(client.job(killed)["progress"]))
        compose("kill", "-s", "KILL", "trainer")
        compose(*UP, TRAINER_REPLICAS="2")
        jobs = [client.submit("noise", "y", seed=seed, **long)["id"] for seed in (1, 2)]
        until(lambda: all(client.job(job)["status"] == "running" for job in jobs))
        for job in jobs:
            client.cancel_job(job)
        done = client.wait(killed)
        assert (done["status"], done["attempts"]) == ("done", 2), done
        assert client.model("noise")["versions"][-1]["version"] == 2
    return (
        f"60 MB up in {uploaded:.1f} s, a job published after {published:.1f} s, one whose trainer was killed done in its second attempt; "
        "two trainers at once"
    )


def replaced_under_load() -> str:
    compose(*UP, API_REPLICAS="2")
    until(lambda: all(health(id) == "healthy" for id in ids("api")))
    before = ids("api")
    assert len(before) == 2
    with load(8) as counts:
        time.sleep(3)
        subprocess.run([ROOT / "deploy" / "roll"], cwd=ROOT, env=ENVIRONMENT, check=True, capture_output=True, timeout=300)
        time.sleep(3)
    after = ids("api")
    assert len(after) == 2
    assert not set(after) & set(before)
    first = len(counts)
    with load(8) as more:
        for id in after:
            docker("restart", "-t", "45", id)
            until(lambda id=id: health(id) == "healthy")
            time.sleep(3)
    failed = [words for words in (*counts, *more) if words]
    assert not failed, (len(failed), failed[:10])
    retried = compose("logs", "--no-color", "proxy").count('"retries":"+')
    return f"{first:,} requests while both were replaced, {len(more):,} while both were restarted, none failed; sent again: {retried}"


def stopped_in_peace() -> str:
    begun = time.monotonic()
    containers = ids("api")
    compose("stop", "api")
    codes = {docker("inspect", "-f", "{{.State.ExitCode}}", id).strip() for id in containers}
    assert codes == {"0"}, codes
    return f"exit code 0 after {time.monotonic() - begun:.1f} s"


# Sessions over HTTP, one request each, never sent twice


def begun_session() -> dict[str, Any]:
    opened = httpx.post(f"{URL}/v1/sessions", json={"model": "heart", "budget": 60, "confidence": 1}, headers=BEARER, timeout=70)
    assert opened.status_code == 201, opened.text
    first = step(opened.json()["id"], STEPS[0])
    assert first.status_code == 200, first.text
    return dict(first.json())


def step(session: str, feature: str, client: Any = httpx) -> httpx.Response:
    body = {"feature": feature, "value": ANSWERS[feature]} if feature in ANSWERS else {"feature": feature, "status": "unavailable"}
    reply: httpx.Response = client.post(f"{URL}/v1/sessions/{session}/answers", json=body, headers=BEARER, timeout=70)
    return reply


def gone_on(session: str) -> bool:
    """What was acknowledged is there, and the next answer is taken."""
    reply = step(session, STEPS[1])
    if reply.status_code == 503:
        return False
    assert [answer["feature"] for answer in reply.json()["answers"]] == list(STEPS), reply.text
    assert reply.json()["spent"] == 2.0, reply.text
    return reply.status_code == 200


@contextlib.contextmanager
def load(clients: int) -> Iterator[list[str]]:
    """So many clients hold sessions until the end of the block; gives a word for every request, empty where all is well."""
    said: list[str] = []
    over = threading.Event()

    def hold() -> None:
        with httpx.Client() as client:
            while not over.is_set():
                reply = client.post(f"{URL}/v1/sessions", json={"model": "heart"}, headers=BEARER, timeout=70)
                said.append("" if reply.is_success else reply.text)
                while reply.is_success and (asked := reply.json()["ask"]):
                    reply = step(reply.json()["id"], asked["feature"], client)
                    said.append("" if reply.is_success else reply.text)

    def hold_or_count() -> None:
        try:
            hold()
        except httpx.HTTPError as error:
            said.append(repr(error))

    threads = [threading.Thread(target=hold_or_count) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield said
    finally:
        over.set()
        for thread in threads:
            thread.join()


def ready() -> None:
    def is_ready() -> bool:
        with contextlib.suppress(httpx.TransportError):
            return httpx.get(f"{URL}/readyz").status_code == 200
        return False

    until(is_ready)


def until(true: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not so after {seconds} s"
        time.sleep(0.1)


def raw(text: str) -> tuple[str, float]:
    """The reply to these bytes, and how long it took."""
    begun = time.monotonic()
    with socket.create_connection(("127.0.0.1", PORT), timeout=30) as connection:
        connection.sendall(text.encode())
        reply = http.client.HTTPResponse(connection)
        reply.begin()
        head = "".join(f"{name}: {value}\r\n" for name, value in reply.getheaders())
        return f"HTTP/1.1 {reply.status}\r\n{head}\r\n{reply.read().decode()}", time.monotonic() - begun


def problem(reply: str, status: int, slug: str) -> dict[str, Any]:
    head, _, body = reply.partition("\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status}"), reply
    assert "content-type: application/problem+json" in head.lower(), reply
    found: dict[str, Any] = json.loads(body)
    assert found["type"] == f"urn:frugal:problem:{slug}", reply
    assert found["request_id"] in head, reply
    return found


def problem_of(reply: httpx.Response, status: int) -> None:
    assert reply.status_code == status, (reply.status_code, reply.text)
    assert reply.headers["content-type"] == "application/problem+json"
    assert int(reply.headers["retry-after"]) >= 1
    assert reply.json()["request_id"] == reply.headers["x-request-id"]


# The engine


def compose(*arguments: str, check: bool = True, **environment: str) -> str:
    return _run([*COMPOSE, *arguments], ENVIRONMENT | environment, check)


def docker(*arguments: str, check: bool = True) -> str:
    return _run([*DOCKER, *arguments], ENVIRONMENT, check)


def inside(service: str, script: str, check: bool = True) -> str:
    return docker("exec", ids(service)[0], "sh", "-c", script, check=check)


def ids(service: str) -> list[str]:
    return compose("ps", "-q", service).split()


def health(id: str) -> str:
    return docker("inspect", "-f", "{{.State.Health.Status}}", id).strip()


def _run(command: list[str], environment: dict[str, str], check: bool) -> str:
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
    if check and done.returncode:
        raise RuntimeError(f"{shlex.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
