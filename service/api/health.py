"""Whether the process lives, whether it can serve, and how it does."""

from functools import partial

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from frugal.service import metrics
from frugal.service.api.access import TheDatabase
from frugal.service.api.bodies import OpenRoute
from frugal.service.api.problems import documented
from frugal.service.api.showing import reply
from frugal.service.errors import NotReady, Problem
from frugal.service.store.migrating import at_head
from frugal.service.store.threads import HEALTH, PATIENCE, within

router = APIRouter(tags=["health"], route_class=OpenRoute)


@router.head("/livez", include_in_schema=False)
@router.get("/livez")
async def livez() -> Response:
    """The process answers."""
    return reply({"status": "alive"})


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", responses=documented(NotReady))
async def readyz(request: Request, database: TheDatabase) -> Response:
    """The database answers and can be written, its tables are those of this release, and the kernels are compiled."""
    checks = {"database": "ok", "migrations": "ok", "kernels": "ok" if request.app.state.warm else "compiling"}
    if request.app.state.stopping:
        checks["process"] = "stopping"
    try:
        await request.app.state.ledger.ping()
        if not await within(PATIENCE, HEALTH, partial(at_head, database)):
            checks["migrations"] = "not at head: run frugal migrate"
        elif await request.app.state.trial.problem() is not None:
            checks["database"] = "cannot be written"
    except Problem as problem:
        checks["database"] = problem.slug
        checks["migrations"] = "unknown"
    if any(state != "ok" for state in checks.values()):
        raise NotReady("; ".join(f"{name}: {state}" for name, state in checks.items() if state != "ok"), checks=checks)
    return reply({"status": "ready", "checks": checks})


@router.get("/metrics", response_class=PlainTextResponse)
async def prometheus(request: Request) -> Response:
    """Counters, latencies and gauges for Prometheus, summed over all worker processes."""
    metrics.loaded.set(len(request.app.state.versions))
    for state, count in request.app.state.ledger.connections().items():
        metrics.pool.labels(state).set(count)
    return Response(await request.app.state.exposition.read(), media_type="text/plain; version=0.0.4; charset=utf-8")
