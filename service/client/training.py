"""Training on a server, for admins: data sets, learners, jobs and their events."""

import json
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import httpx

from frugal.service.client.events import PATIENCE, Patience, parsed
from frugal.service.client.problems import ClientError, Json, Problem, Unreachable
from frugal.service.client.uploading import Table, opened
from frugal.service.client.wire import AGAIN, Wire, check, given, path_of, plain

DATASETS, JOBS = "/v1/admin/datasets", "/v1/admin/training-jobs"
STORING = 600.0  # seconds for the server to store a table once all of it is there
STALLED = 300.0  # seconds for it to take the next block: it reads as fast as it can parse
QUIET = 60.0  # seconds without a word on a stream of events, on which the server says something every 15
IN_ADDRESS = 4000  # letters of a price list that go with the table; longer ones do not fit into an address everywhere
OVER = ("done", "failed", "cancelled")
Costs = Mapping[str, float | Mapping[str, Any]]  # a number, or an object: cost, group, cost_in_group, delayed, unit, question
Penalties = float | Mapping[str, Mapping[str, float]]  # of every mistake; or by true label, then by the label that is said


class Training(Wire):
    """The admin's calls that train."""

    # Data sets

    def push_dataset(
        self,
        name: str,
        table: Table,
        costs: Costs | None = None,
        *,
        drop: Sequence[str] = (),
        numeric: Sequence[str] = (),
        missing: Sequence[str] = (),
    ) -> Json:
        """Store a table: CSV with a header line, gzipped CSV or Parquet, by its path, as bytes or as an open file, sent as it is read.

        `drop` names columns to leave out, `numeric` columns of numbers whose other cells are missing, `missing` cells that mean missing.
        The reply's `warnings` say what is remarkable. The same table under the same name again is left as it is; so a lost reply is no
        harm. A long price list is set after the table.
        """
        if costs is not None:
            left_out = {part.strip() for text in _listed(drop) for part in (text, *text.split(","))}
            costs = {feature: price for feature, price in costs.items() if feature not in left_out}
        prices = None if costs is None else json.dumps(costs, allow_nan=False, default=plain)
        fits = prices is None or len(prices) <= IN_ADDRESS
        choices = {"drop": _listed(drop), "numeric": _listed(numeric), "missing": _listed(missing)}
        with opened(table) as upload:
            stored = self._json(
                "POST",
                DATASETS,
                params=given(name=name, costs=prices if fits else None) | choices,
                content=upload,
                headers=upload.headers,
                timeout=httpx.Timeout(self._http.timeout.connect, write=STALLED, read=STORING),
                repeat=upload.repeats,
            )
        return stored if fits or costs is None else self.set_costs(name, costs)

    def datasets(self) -> Iterator[Json]:
        """Data sets by name, without their columns."""
        return self._pages(DATASETS)

    def dataset(self, name: str) -> Json:
        """A data set: per column its kind, range or categories, how many are missing, and its cost."""
        return self._json("GET", path_of(DATASETS, name))

    def set_costs(self, name: str, costs: Costs) -> Json:
        """Other prices for the jobs that come, all of them: what is not named costs 1."""
        return self._json("PUT", path_of(DATASETS, name, "costs"), dict(costs))

    def delete_dataset(self, name: str) -> None:
        """Delete a data set. Models that were trained on it stay."""
        self._delete(path_of(DATASETS, name))

    # Jobs

    def learners(self) -> list[Json]:
        """What can be trained: parameters as JSON Schema with defaults, and the paper each comes from."""
        found: list[Json] = self._json("GET", "/v1/admin/learners")["items"]
        return found

    def submit(
        self,
        dataset: str,
        label: str,
        *,
        learner: str = "frontier",
        params: Mapping[str, Any] | None = None,
        budget: float | None = None,
        costs: Costs | None = None,
        penalties: Penalties | None = None,
        test_fraction: float | None = None,
        seed: int | None = None,
        publish: str | None = None,
        alias: str | None = None,
        idempotency_key: str | None = None,
    ) -> Json:
        """Queue a training; gives the job. Its model is published as `publish` (by default the data set's name), and `alias` moved to it.

        Under the same `idempotency_key` the same request gives the same job; by default the key is a new one.
        """
        name = {"name": publish or dataset, "alias": alias} if publish or alias else None
        asked = given(budget=budget, costs=costs, penalties=penalties, test_fraction=test_fraction, seed=seed, publish=name, params=params)
        body = {"dataset": dataset, "label": label, "learner": learner, **asked}
        return self._json("POST", JOBS, body, headers={"Idempotency-Key": idempotency_key or str(uuid.uuid4())})

    def job(self, job_id: str) -> Json:
        """A job; once done, with its model, metrics and the curve of cost against error."""
        return self._json("GET", path_of(JOBS, job_id))

    def jobs(self, status: str | None = None) -> Iterator[Json]:
        """All jobs, newest first, page after page."""
        return self._pages(JOBS, given(status=status))

    def cancel_job(self, job_id: str) -> Json:
        """End a job that waits or runs; nothing is published."""
        return self._json("POST", path_of(JOBS, job_id, "cancel"))

    # Events

    def wait(self, job_id: str, on_event: Callable[[Json], None] | None = None, patience: float = PATIENCE) -> Json:
        """Until the job is over; gives it. `on_event` gets each event as it comes."""
        with closing(self.events(job_id, patience=patience)) as events:
            for event in events:
                if on_event is not None:
                    on_event(event)
        return self.job(job_id)

    def events(self, job_id: str, after: int = 0, patience: float = PATIENCE) -> Generator[Json, None, None]:
        """What happens to a job, from the event after number `after` to its end: `id`, `event`, `at`, and what the event brings.

        A lost connection or a server that starts anew is waited for, `patience` seconds at most, and nothing is missed or told twice.
        """
        path, waiting = path_of(JOBS, job_id, "events"), Patience(self.attempts, patience)
        while True:
            try:
                for event in self._stream(path, after, waiting):
                    after = event["id"]
                    waiting.heard()
                    yield event
                    if event["event"] in OVER:
                        return
            except StopListening:
                return
            except (httpx.RequestError, Problem) as error:
                lost: Exception = error
            else:
                lost = Unreachable(f"{self.url} closed the stream of events before the job was over", sent=True)
            self._wait_after(lost, waiting)

    def _stream(self, path: str, after: int, waiting: Patience) -> Iterator[Json]:
        """The events of one connection."""
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": str(after)} if after else {})
        timeout = httpx.Timeout(self._http.timeout.connect, read=QUIET)
        with self._http.stream("GET", path, headers=headers, timeout=timeout) as reply:
            if not reply.is_success:
                reply.read()
            check(reply)
            if reply.status_code == httpx.codes.NO_CONTENT:
                raise StopListening
            if not reply.headers.get("Content-Type", "").startswith("text/event-stream"):
                raise ClientError(f"{self.url} answers, but not as a Frugal server does: check the address")
            waiting.connected()
            yield from parsed(reply.iter_bytes())

    def _wait_after(self, lost: Exception, waiting: Patience) -> None:
        """Until it is time to look again, or raise what it was."""
        asked = None
        if isinstance(lost, Problem):
            if lost.status not in AGAIN:
                raise lost
            asked = lost.retry_after
        wait = waiting.wait_after_loss(asked)
        if wait is not None:
            self._sleep(wait)
        elif isinstance(lost, httpx.RequestError):
            raise Unreachable(f"{self.url} did not answer: {lost or type(lost).__name__}", sent=waiting.answered) from lost
        else:
            raise lost


def _listed(names: Sequence[str]) -> list[str]:
    """Several names; or one, as it is."""
    return [names] if isinstance(names, str) else list(names)


class StopListening(Exception):  # noqa: N818 - no error: the job is over and all of it was told
    pass
