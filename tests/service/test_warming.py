"""Kernels that sessions do not need: compiled beside the server, waited for by requests that come earlier."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numba
import pytest

from frugal.models.kernels.compiling import turn
from frugal.service import warming
from frugal.service.warming import Compiler, Warming, compile_later

ROOT = Path(__file__).parents[2]
PATIENCE = 60  # seconds
pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled")


def gone(pid: int) -> bool:
    """Ended, or ended and not yet waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_for(what) -> None:
    end = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize("part", ["predicting", "reading"])
def test_a_request_waits_for_its_kernels_and_sessions_go_on_meanwhile(
    client: httpx.Client, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    warming.PARTS.warm_up(part)
    client.app.state.kernels = Warming()  # as on a machine where only sessions' kernels are there
    missing = True
    load = warming.PARTS.load_cached
    monkeypatch.setattr(warming.PARTS, "load_cached", lambda part: not missing and load(part))
    wanted = {
        "predicting": lambda: client.post("/v1/predict", json={"model": "clinic", "rows": [{"fever": "no"}]}),
        "reading": lambda: client.post(
            "/v1/admin/datasets", params={"name": "t"}, content=b"a,b\n1,x\n2,y\n", headers={"Content-Type": "text/csv"}
        ),
    }[part]
    with ThreadPoolExecutor(8) as threads:
        with turn(part):  # somebody compiles them
            waiting = [threads.submit(wanted) for _ in range(8)]
            for _ in range(5):
                session = client.post("/v1/sessions", json={"model": "clinic"}).json()
                answered = client.post(f"/v1/sessions/{session['id']}/answers", json={"feature": "fever", "value": "no"}).json()
                assert answered["prediction"]["label"] == "well"
            assert not any(each.done() for each in waiting)
            missing = False  # they are compiled, and the process goes on with others: it need not let go
            assert {each.result(PATIENCE).status_code for each in waiting} <= {200, 201}
        missing = True
        assert wanted().status_code == 200  # loaded once is loaded


def test_a_part_whose_compiler_has_died_is_compiled_by_who_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(warming.PARTS, "load_cached", lambda part: False)
    monkeypatch.setattr(warming.PARTS, "warm_up", calls.append)

    async def ask() -> None:
        with turn("predicting"):
            waiting = asyncio.create_task(Warming().ready("predicting"))
            await asyncio.sleep(3 * warming.POLL)
            assert not waiting.done()
            assert calls == []
        await asyncio.wait_for(waiting, PATIENCE)

    asyncio.run(ask())
    assert calls == ["predicting"]


def test_one_thread_loads_for_all_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(warming.PARTS, "load_cached", lambda part: False)
    monkeypatch.setattr(warming.PARTS, "warm_up", calls.append)

    async def ask() -> None:
        kernels = Warming()
        await asyncio.gather(*(kernels.ready("predicting") for _ in range(50)))
        await kernels.ready("predicting")

    asyncio.run(ask())
    assert calls == ["predicting"]


def test_a_part_that_could_not_be_loaded_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def fail_once(part: str) -> None:
        calls.append(part)
        if len(calls) == 1:
            raise MemoryError

    monkeypatch.setattr(warming.PARTS, "load_cached", lambda part: False)
    monkeypatch.setattr(warming.PARTS, "warm_up", fail_once)

    async def ask() -> None:
        kernels = Warming()
        with pytest.raises(MemoryError):
            await kernels.ready("predicting")
        await kernels.ready("predicting")

    asyncio.run(ask())
    assert len(calls) == 2


def test_where_all_is_cached_no_process_is_started(capsys: pytest.CaptureFixture[str]) -> None:
    warming.PARTS.warm_up("deciding", *warming.LATER)
    assert compile_later() is None
    assert capsys.readouterr().err == ""


def test_where_something_is_missing_it_is_told_and_compiled_beside(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(warming.PARTS, "load_cached", lambda part: part != "predicting")
    started = compile_later()
    assert started is not None
    try:
        assert started.process.args[-2:] == ["predicting", "growing"]
        assert "compile in the background" in capsys.readouterr().err
        assert started.process.wait(PATIENCE * 4) == 0
    finally:
        started.end()


def test_it_compiles_into_the_cache_that_others_read_with_less_priority_and_ends_when_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    compiler = Compiler(["reading"])
    pid = compiler.process.pid
    try:
        wait_for(lambda: list(tmp_path.rglob("*.nbc")))
        assert os.getpriority(os.PRIO_PROCESS, pid) == min(os.getpriority(os.PRIO_PROCESS, 0) + warming.NICE, 19)
    finally:
        compiler.end()
    assert gone(pid)


def test_it_ends_with_its_parent_however_that_ends(tmp_path: Path) -> None:
    script = (
        "import time; from frugal.service.warming import Compiler; print(Compiler(['growing']).process.pid, flush=True); time.sleep(99)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}, stdout=subprocess.PIPE, text=True
    ) as parent:
        pid = int(parent.stdout.readline())
        wait_for(lambda: list(tmp_path.rglob("*.lock")))  # it is at work
        assert not gone(pid)
        os.kill(parent.pid, signal.SIGKILL)
        wait_for(lambda: gone(pid))
