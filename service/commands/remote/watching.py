"""A job as it is watched: a live bar on a terminal; elsewhere a line for what is new."""

import os
import threading
import time
from datetime import datetime
from types import TracebackType
from typing import Self, TextIO

from frugal.service.client import Json
from frugal.service.commands.reporting import drawn

TICK = 0.5  # seconds between two drawings: the clock goes on while nothing happens
STEP = 0.1  # of the whole, after which there is another line where there is no bar
CLEAR = "\r\x1b[K"  # to the line's beginning, and wipe it


class Watch:
    """Takes a job's events, and shows them until it is left."""

    def __init__(self, stream: TextIO, live: bool | None = None) -> None:
        self.stream, self.live = stream, stream.isatty() if live is None else live
        self._lock, self._left = threading.Lock(), threading.Event()
        self._text, self._fraction, self._shown = "", 0.0, ("", -1.0)
        self._clock = Clock()

    def __enter__(self) -> Self:
        if self.live:
            threading.Thread(target=self._tick, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        with self._lock:
            self._left.set()
            if self.live and self._text:
                print(file=self.stream, flush=True)

    def __call__(self, event: Json) -> None:
        with self._lock:
            if "why" in event:
                self._print(f"{self._clock}  queued again: {event['why']}")
            self._clock.set(event)
            kind, fraction = str(event.get("phase", event["event"])), event.get("fraction", 0.0)
            if event["event"] in ("failed", "cancelled"):
                fraction = self._fraction
            self._text, self._fraction = told(event), fraction
            if self.live:
                self._draw()
            elif self._shown[0] != kind or fraction >= self._shown[1] + STEP:
                self._shown = kind, fraction
                self._print(f"{self._clock}  {100 * fraction:3.0f} %  {self._text}")

    def _print(self, line: str) -> None:
        print(f"{CLEAR if self.live else ''}{line}", file=self.stream, flush=True)

    def _tick(self) -> None:
        while not self._left.wait(TICK):
            with self._lock:
                if self._text and not self._left.is_set():
                    self._draw()

    def _draw(self) -> None:
        line = f"{drawn(self._fraction)} {100 * self._fraction:3.0f} %  {self._clock}  {self._text}"
        print(CLEAR + line[: columns(self.stream) - 1], end="", file=self.stream, flush=True)


class Clock:
    """Time since the job was queued, and from its start since that: by the server's clock, and by ours since it last said anything."""

    def __init__(self) -> None:
        self._since: datetime | None = None
        self._passed, self._heard_at, self._over = 0.0, time.monotonic(), False

    def set(self, event: Json) -> None:
        at = datetime.fromisoformat(event["at"])
        if self._since is None or event["event"] in ("queued", "running"):
            self._since = at
        self._passed, self._heard_at = (at - self._since).total_seconds(), time.monotonic()
        self._over = event["event"] in ("done", "failed", "cancelled")

    def __str__(self) -> str:
        seconds = int(self._passed + (0 if self._over else time.monotonic() - self._heard_at))
        minutes, hours = seconds // 60 % 60, seconds // 3600
        return f"{hours}:{minutes:02}:{seconds % 60:02}" if hours else f"{minutes}:{seconds % 60:02}"


def told(event: Json) -> str:
    """An event in words.

    Examples
    --------
    >>> told({"event": "progress", "phase": "growing", "fraction": 0.3, "trees": 12, "mean_cost": 3.4})
    'growing, 12 trees, mean cost 3.40'
    >>> told({"event": "running", "attempt": 2})
    'starting, attempt 2'
    """
    if event["event"] == "queued":
        return "waiting for a worker"
    if event["event"] == "running":
        return "starting" + (f", attempt {event['attempt']}" if event.get("attempt", 1) > 1 else "")
    parts = [str(event.get("phase", event["event"]))]
    if event.get("trees"):
        parts.append(f"{event['trees']:,} tree{'s' if event['trees'] > 1 else ''}")
    if event.get("mean_cost") is not None:
        parts.append(f"mean cost {event['mean_cost']:,.2f}")
    return ", ".join(parts)


def columns(stream: TextIO) -> int:
    """How wide the terminal is now: a line that wraps could not be drawn over."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80
