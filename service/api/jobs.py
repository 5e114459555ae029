"""Training over HTTP, for admins: learners, jobs, their events as a stream."""

from functools import partial
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Discriminator, Field, Tag
from starlette.types import Receive, Scope, Send

from frugal.service.api.access import Caller, TheDatabase
from frugal.service.api.bodies import AdminRoute
from frugal.service.api.paging import Cursor, Limit, parse_cursor, parse_id
from frugal.service.api.problems import BODY, always, documented
from frugal.service.api.replaying import IdempotencyHeader, fingerprint
from frugal.service.api.shapes import Cost, Costs, FeatureName, Money, Seed, Strict, example, prices_of
from frugal.service.api.showing import reply
from frugal.service.api.shown import Moment
from frugal.service.errors import DatasetNotFound, Forbidden, InvalidRequest, JobNotFound, JobOver, KeyReused, TooManyWatchers
from frugal.service.store import job_rows
from frugal.service.store.tables import iso
from frugal.service.store.threads import in_thread
from frugal.service.training import jobs
from frugal.service.training.learners import shown_learners
from frugal.service.training.spec import Spec
from frugal.service.training.watching import Watching

router = APIRouter(prefix="/v1/admin", tags=["training"], route_class=AdminRoute, responses=always(Forbidden))
Status = Literal["queued", "running", "done", "failed", "cancelled"]
Name = Annotated[str, Field(max_length=64)]


class Publish(Strict):
    """What the model is published as."""

    name: Name
    alias: Name | None = Field(None, description="an alias to move to the new version")


Penalties = Annotated[
    Annotated[Cost, Tag("<number>")] | Annotated[dict[FeatureName, dict[FeatureName, Cost]], Tag("<matrix>")],
    Discriminator(lambda given: "<matrix>" if isinstance(given, dict) else "<number>"),
]


class NewJob(Strict):
    """What to train, on what, and what becomes of it."""

    model_config = example(
        {"dataset": "heart", "label": "disease", "learner": "frontier", "params": {"class_weight": "balanced"}, "budget": 60, "seed": 1,
         "costs": {"age": 1}, "publish": {"name": "heart", "alias": "live"}}
    )  # fmt: skip

    dataset: Name
    label: FeatureName
    learner: Annotated[str, Field(max_length=64)] = "frontier"
    params: dict[str, Any] = Field(default_factory=dict, description="the learner's parameters: GET /v1/admin/learners has their schema")
    budget: Money | None = Field(
        None, description="the mean cost per case to stay within; of the learner frontier: the one that its model aims at by default"
    )
    costs: Costs | None = Field(None, description="prices that win over the data set's; what neither names costs 1")
    penalties: Penalties | None = Field(
        None,
        description="what a mistake costs: a number, or by true label, then by the label said; the model then avoids dear ones",
    )
    test_fraction: Annotated[float, Field(ge=0, lt=1)] = Field(0.25, description="rows that the learner never sees, to measure on")
    seed: Seed = 0
    publish: Publish | None = Field(None, description="by default the data set's name")

    def spec(self) -> Spec:
        publish = self.publish or Publish(name=self.dataset, alias=None)
        return Spec(
            dataset=self.dataset,
            label=self.label,
            learner=self.learner,
            params=self.params,
            budget=self.budget,
            costs=prices_of(self.costs),
            penalties=self.penalties,
            test_fraction=self.test_fraction,
            seed=self.seed,
            publish=publish.model_dump(),
        )


class LearnerShown(Strict):
    name: str
    summary: str
    paper: str
    takes_budget: bool
    parameters: dict[str, Any] = Field(description="JSON Schema, with defaults")


class LearnersShown(Strict):
    items: list[LearnerShown]


class ProgressShown(Strict):
    phase: str
    fraction: float
    trees: int | None
    mean_cost: float | None


class ModelMade(Strict):
    name: str
    version: int


class JobShown(Strict):
    """A job: what was asked for, how far it is, what came of it."""

    id: str
    status: Status
    owner: str
    dataset: str
    label: str
    learner: str
    params: dict[str, Any]
    budget: float | None
    costs: dict[str, Any]
    penalties: Any
    test_fraction: float
    seed: int
    publish: Publish
    attempts: int
    progress: ProgressShown | None
    model: ModelMade | None
    metrics: dict[str, Any] | None
    curve: list[dict[str, Any]] | None
    warnings: list[str]
    failure: str | None
    created_at: Moment
    started_at: Moment | None
    updated_at: Moment
    finished_at: Moment | None


class JobsShown(Strict):
    items: list[JobShown]
    next: str | None


@router.get("/learners", response_model=LearnersShown)
async def list_learners(caller: Caller) -> Response:
    """What can be trained: each learner's parameters as JSON Schema with defaults, and the paper it comes from."""
    return reply({"items": shown_learners()})


@router.post("/training-jobs", status_code=202, response_model=JobShown, responses=documented(*BODY, KeyReused, DatasetNotFound))
async def submit_job(body: NewJob, caller: Caller, database: TheDatabase, idempotency_key: IdempotencyHeader = None) -> Response:
    """Queue a training, judged at once against its data set and its learner's schema."""
    keyed = None if idempotency_key is None else (idempotency_key, fingerprint(body))
    row, replayed = await in_thread(jobs.submit, database, caller.actor, body.spec(), keyed)
    headers = {"Location": f"/v1/admin/training-jobs/{row.id}"} | ({"Idempotent-Replayed": "true"} if replayed else {})
    return reply(as_submitted(row) if replayed else shown(row), 202, headers)


@router.get("/training-jobs", response_model=JobsShown)
async def list_jobs(
    caller: Caller,
    database: TheDatabase,
    limit: Limit = 20,
    cursor: Cursor = None,
    status: Status | None = None,
) -> Response:
    """All jobs, newest first."""
    before = parse_cursor(cursor)
    rows = await in_thread(database.read, lambda db: job_rows.listed(db, before, limit + 1, status))
    return reply({"items": [shown(row) for row in rows[:limit]], "next": str(rows[limit - 1].id) if len(rows) > limit else None})


@router.get("/training-jobs/{id}", response_model=JobShown, responses=documented(JobNotFound))
async def read_job(id: str, caller: Caller, database: TheDatabase) -> Response:
    """A job; once done, with its version, metrics and the curve of cost against error, all on rows that the learner never saw."""
    return reply(shown(await in_thread(jobs.read, database, _id(id))))


@router.post("/training-jobs/{id}/cancel", response_model=JobShown, responses=documented(*BODY, JobNotFound, JobOver))
async def cancel_job(id: str, caller: Caller, database: TheDatabase, body: Strict | None = None) -> Response:
    """End a job that waits or runs. Nothing is published, and its process is gone within seconds."""
    return reply(shown(await in_thread(jobs.cancel, database, caller.actor, _id(id))))


@router.get(
    "/training-jobs/{id}/events",
    response_class=StreamingResponse,
    responses=documented(InvalidRequest, JobNotFound, TooManyWatchers)
    | {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}, 204: {"description": "the job is over and all was told"}},
)
async def watch_job(
    id: str,
    request: Request,
    caller: Caller,
    database: TheDatabase,
    last_event_id: Annotated[str | None, Header(pattern=r"^\d{0,9}$", description="go on after this event")] = None,
) -> Response:
    """Server-sent events from the first, or after `Last-Event-ID`: queued, running, progress, and at the end done, failed or cancelled."""
    row = await in_thread(jobs.read, database, _id(id))
    after = min(int(last_event_id or 0), row.events)
    if row.status not in job_rows.ACTIVE and after == row.events:
        return Response(status_code=204)  # all was told: a browser's EventSource then comes no more
    return EventStream(request.app.state.watching, row.id, row.events, after)


class EventStream(StreamingResponse):
    """One watcher: it takes its place when it is made, and gives it back however it ends."""

    media_type = "text/event-stream"

    def __init__(self, watching: Watching, id: UUID, events: int, after: int) -> None:
        watching.join(id, events)
        self.leave = partial(watching.leave, id)
        super().__init__(watching.told(id, after), headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.leave()


def shown(row: Any) -> dict[str, Any]:
    result = row.result or {}
    return {
        "id": str(row.id),
        "status": row.status,
        "owner": row.owner,
        **row.spec,
        "attempts": row.attempts,
        "progress": row.progress or None,
        "model": result.get("model"),
        "metrics": result.get("metrics"),
        "curve": result.get("curve"),
        "warnings": [*row.spec.get("warnings", []), *result.get("warnings", [])],
        "failure": row.failure,
        "created_at": iso(row.created_at),
        "started_at": iso(row.started_at) if row.started_at else None,
        "updated_at": iso(row.updated_at),
        "finished_at": iso(row.finished_at) if row.finished_at else None,
    }


def as_submitted(row: Any) -> dict[str, Any]:
    """The first reply to a submission, whatever has become of the job since."""
    first = {"status": "queued", "attempts": 0, "progress": None, "model": None, "metrics": None, "curve": None, "failure": None}
    told = {"warnings": row.spec.get("warnings", []), "started_at": None, "updated_at": iso(row.created_at), "finished_at": None}
    return shown(row) | first | told


def _id(text: str) -> UUID:
    found = parse_id(text)
    if found is None:
        raise JobNotFound()
    return found
