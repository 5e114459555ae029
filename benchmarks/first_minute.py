"""From a fresh clone to the first answer: `make run` with an empty pip cache and no compiled kernels, then again with both in place.

    python benchmarks/first_minute.py [--starts 3]

Bars, on an idle machine with two cores: under 90 seconds the first time, under 3 the second. Clones the commit that is checked out into a
temporary folder and types what `make run` prints. Packages come from whatever index pip is set up for, so its distance counts. Processor
time is beside wall time, because a busy machine has little of the one and much of the other. The last line is JSON.
"""

import argparse
import json
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TICKS = os.sysconf("SC_CLK_TCK")
BARS = {"first": 90.0, "second": 3.0}  # seconds
STAGES = (  # what a line of output ends, in order
    ("installing", re.compile(r"^installed \d+ packages")),
    ("importing", re.compile(r"^frugal: (kernels for|compiling|database)")),
    ("compiling for sessions", re.compile(r"^frugal: listening on")),
)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--starts", type=int, default=3, help="how often it is started again (the median counts)")
    starts = options.parse_args().starts
    print(f"{machine()}; load before: {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory(prefix="frugal-first-minute-") as folder:
        place = Path(folder)
        began = time.monotonic()
        subprocess.run(["git", "clone", "--quiet", ROOT, place / "frugal"], check=True)
        cloned = time.monotonic() - began
        first = started(place, wait_for_all=True)
        again = [started(place) for _ in range(starts)]
    first["seconds"] += cloned
    first["stages"] = {"cloning": cloned, **first["stages"]}
    for stage, seconds in first["stages"].items():
        print(f"    {stage:32} {seconds:7.1f} s")
    told("first answer, nothing there", first, BARS["first"])
    print(f"    all kernels compiled, beside it  {first['all_kernels']:7.1f} s")
    second = {name: median(run[name] for run in again) for name in ("seconds", "processor")}
    told(f"first answer, started again (median of {starts})", second, BARS["second"])
    result = {"machine": machine(), "first": first, "again": [run["seconds"] for run in again], "second": second, "bars": BARS}
    print(json.dumps(result))


def told(what: str, run: dict[str, Any], bar: float) -> None:
    print(f"{what}: {run['seconds']:.1f} s, bar {bar:.0f} s; {run['processor']:.1f} s of processor time")


def started(place: Path, wait_for_all: bool = False) -> dict[str, Any]:
    """`make run` to the first answer: seconds, processor seconds, and the stages on the way."""
    began = time.monotonic()
    with running(place) as process:
        ended: dict[str, float] = {}
        line = ""
        assert process.stdout is not None
        for line in process.stdout:
            for stage, sign in STAGES:
                if stage not in ended and sign.match(line):
                    ended[stage] = time.monotonic() - began
            if line.startswith("ID=$("):
                break
        else:
            sys.exit("make run ended before it listened")
        answer(line)
        seconds = time.monotonic() - began
        spent, beside = processor(process.pid), processor(process.pid, beside=True)
        if wait_for_all:
            while any(map(in_background, tree(process.pid))):
                time.sleep(0.1)
        everything = time.monotonic() - began
    stages, before = {}, 0.0
    for stage, _ in STAGES:
        if stage in ended:
            stages[stage], before = ended[stage] - before, ended[stage]
    stages["asking"] = seconds - before
    return {"seconds": seconds, "processor": spent, "beside": beside, "stages": stages, "all_kernels": everything}


def answer(line: str) -> None:
    """Type the first line that was printed; there must be a question in the reply."""
    reply = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True).stderr
    assert json.loads(reply)["ask"]["feature"], reply


@contextmanager
def running(place: Path) -> Iterator["subprocess.Popen[str]"]:
    """`make run` as somebody would type it who has never used pip or numba; Ctrl-C at the end."""
    ours = ("FRUGAL_", "NUMBA_", "MAKE", "PYTHON", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment |= {"PIP_CACHE_DIR": str(place / "pip"), "XDG_CACHE_HOME": str(place / "cache"), "FRUGAL_PORT": str(free_port())}
    process = subprocess.Popen(
        ["make", "run", f"PYTHON={sys.executable}"],
        cwd=place / "frugal",
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.communicate()


def tree(root: int) -> list[int]:
    """A process and all that it has started and that lives."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := stat(int(entry.name))):
            parents[int(entry.name)] = int(fields[1])
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def processor(root: int, beside: bool = False) -> float:
    """Processor seconds of a process and its descendants, those included that have ended and were waited for.

    Without what compiles in the background, which nobody waits for; or, with `beside`, of that alone.
    """
    counted = [pid for pid in tree(root) if in_background(pid) == beside]
    return sum(sum(map(int, fields[11:15])) for pid in counted if (fields := stat(pid))) / TICKS


def in_background(pid: int) -> bool:
    return "frugal.service.warming" in command(pid)


def stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on; none where it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def machine() -> str:
    names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return f"{os.cpu_count()} cores, {names[0] if names else platform.machine()}, Python {platform.python_version()}"


if __name__ == "__main__":
    main()
