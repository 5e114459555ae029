"""Makes the environment that `make run` uses: the packages of requirements.lock, then this checkout. Nothing for developers.

    python3 deploy/install.py FOLDER

Only the standard library, because it runs before anything is installed. On a terminal one line moves; elsewhere a few lines are printed.
"""

from __future__ import annotations  # an older Python must get as far as being told so

import re
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKS = [ROOT / "requirements.lock", ROOT / "requirements-build.lock"]  # the second is setuptools, which installs the checkout
WIDTH = 24
ROOM = 100  # characters of a terminal's line
FETCHED = re.compile(r"(?:Collecting |Processing \S*/|Requirement already satisfied: )(\w+(?:[.-][a-zA-Z]\w*)*)")  # and its name
SHOWN = 15  # lines of pip's output when it fails


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036  nobody has chosen this Python yet
        sys.exit("frugal needs Python 3.11 or later: make run PYTHON=python3.12")
    if len(sys.argv) != 2:
        sys.exit("usage: python3 deploy/install.py FOLDER")
    try:
        install(Path(sys.argv[1]), LOCKS, ROOT)
    except KeyboardInterrupt:
        sys.exit(130)


def install(folder: Path, locks: list[Path], checkout: Path | None = None) -> None:
    """A virtual environment in `folder` with all that the lock files name, and a checkout that is run from where it is."""
    python = folder / "bin" / "python"
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--no-input", "install", "--progress-bar", "off"]
    # Not compiled: that took a third of pip's time, and most of it is never imported. Python compiles what is.
    pip.append("--no-compile")
    with Progress(folder) as progress:
        run([sys.executable, "-m", "venv", str(folder)], progress)
        progress.expect(locks)
        run([*pip, "--require-hashes", *(f"--requirement={lock}" for lock in locks)], progress)
        if checkout:
            progress.doing = "installing frugal itself"
            run([*pip, "--no-deps", "--no-build-isolation", "--editable", str(checkout)], progress)
    print(f"installed {progress.packages} packages in {progress.seconds:.0f} s")


def run(command: list[str], progress: Progress) -> None:
    """Run a command and hear how far it is; where it fails, show the end of what it said."""
    said: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace") as process:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line.rstrip())
            progress.hear(line)
    if process.returncode:
        progress.end()
        sys.exit("\n".join([*said[-SHOWN:], "", "The installation failed: see above. Run the same command again to go on."]))


class Progress:
    """Packages fetched, then packages in place: half of the way each. A thread draws it, so that it moves while pip is silent."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.doing = "setting up"
        self.packages = self.fetched = self._there = 0
        self._began, self._told = time.monotonic(), -1
        self._moving = sys.stdout.isatty()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._draw_on, daemon=True)

    def __enter__(self) -> Progress:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def expect(self, locks: list[Path]) -> None:
        self._there = self._in_place()
        self.packages = sum(len(re.findall(r"^\S+==", lock.read_text(), re.MULTILINE)) for lock in locks)

    def hear(self, line: str) -> None:
        """A line of pip's output."""
        if name := FETCHED.match(line):
            self.fetched += 1
            self.doing = f"fetching {name[1]}"
        elif line.startswith("Ignoring "):  # locked for another kind of machine
            self.packages -= 1
        elif size := re.match(r" +Downloading \S+ \((.*)\)", line):
            self.doing += f" ({size[1]})"
        elif line.startswith("Installing collected packages"):
            self.doing = "unpacking"

    def end(self) -> None:
        self._over.set()
        self._thread.join()
        self._draw()  # how it stands: the thread may not have had its turn
        if self._moving:
            print("\r" + " " * ROOM + "\r", end="", flush=True)

    def _in_place(self) -> int:
        return len(list(self.folder.glob("lib/*/site-packages/*.dist-info")))

    def _draw_on(self) -> None:
        while not self._over.wait(0.2):
            self._draw()

    def _draw(self) -> None:
        placed = self._in_place() - self._there if self.packages else 0
        share = min((self.fetched + placed) / (2 * self.packages), 1.0) if self.packages else 0.0
        count = f"{placed if self.doing == 'unpacking' else self.fetched} of {self.packages} packages, " if self.packages else ""
        clock = f"{int(self.seconds) // 60}:{int(self.seconds) % 60:02}"
        if self._moving:
            print(f"\r[{'#' * int(WIDTH * share):{WIDTH}}] {clock}  {count}{self.doing}".ljust(ROOM)[: ROOM + 1], end="", flush=True)
        elif int(4 * share) > self._told:
            self._told = int(4 * share)
            print(f"{clock}  {count}{self.doing}", flush=True)


if __name__ == "__main__":
    main()
