"""Data sets over HTTP, for admins: upload as a stream, list, describe, price, delete."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import Field, TypeAdapter, ValidationError

from frugal.service.api.access import Caller, TheDatabase, TheSettings
from frugal.service.api.bodies import AdminRoute, parse, stream_body
from frugal.service.api.paging import Limit, NameCursor
from frugal.service.api.problems import BODY, always, documented
from frugal.service.api.shapes import Costs, Strict, prices_of
from frugal.service.api.showing import reply
from frugal.service.api.shown import Moment
from frugal.service.config import Settings
from frugal.service.errors import (
    BadTable,
    Busy,
    DatasetExists,
    DatasetInUse,
    DatasetNotFound,
    Forbidden,
    InvalidRequest,
    Problem,
    TooLarge,
    UnsupportedMediaType,
)
from frugal.service.registry.versions import check_name, is_name
from frugal.service.store.threads import WORK, in_thread, within
from frugal.service.tables import Choices, Columns, Limits, Reader, Rejected
from frugal.service.training import datasets

router = APIRouter(prefix="/v1/admin/datasets", tags=["training"], route_class=AdminRoute, responses=always(Forbidden))
TABLES = {"text/csv", "application/gzip", "application/vnd.apache.parquet", "application/octet-stream"}
ALSO = {"", "text/plain", "application/csv", "application/x-gzip", "application/x-parquet", "application/parquet"}
BLOCK = 1 << 20  # bytes that are handed to the reader at once
STORING = 300.0  # seconds to store a table
AT_ONCE = 2  # uploads that one process reads beside each other
WAITING = 20.0  # seconds that another one waits for its turn
PARSING = ThreadPoolExecutor(AT_ONCE, "frugal-upload")
COSTS: TypeAdapter[Costs] = TypeAdapter(Costs)


class DatasetBrief(Strict):
    name: str
    rows: int
    columns: Any
    bytes: int
    owner: str
    created_at: Moment


class DatasetsShown(Strict):
    items: list[DatasetBrief]
    next: str | None


class ColumnShown(Strict):
    """A column: what it holds, and what it costs as a feature."""

    name: str
    kind: Literal["numeric", "categorical"]
    missing: int
    distinct: int | None
    categories: list[str] | None
    low: float | None
    high: float | None
    whole: bool | None
    cost: float | None
    group: str | None
    cost_in_group: float | None
    delayed: bool
    unit: str | None
    question: str | None


class DatasetShown(DatasetBrief):
    columns: list[ColumnShown]
    warnings: list[str] = Field(description="what is remarkable about the columns and their prices; no values are repeated")


@router.post(
    "",
    status_code=201,
    response_model=DatasetShown,
    responses=documented(*BODY, BadTable, DatasetExists)
    | {200: {"model": DatasetShown, "description": "the same table was stored under this name before"}},
    openapi_extra={
        "requestBody": {"required": True, "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in sorted(TABLES)}}
    },
)
async def upload_dataset(
    request: Request,
    caller: Caller,
    database: TheDatabase,
    settings: TheSettings,
    name: str,
    costs: Annotated[str | None, Query(description="JSON, as for the route of costs; what is not named costs 1")] = None,
    drop: Annotated[tuple[str, ...], Query(description="columns to leave out; a list with commas, or several times")] = (),
    numeric: Annotated[tuple[str, ...], Query(description="columns to read as numbers: words in them are missing")] = (),
    missing: Annotated[tuple[str, ...], Query(description="cells that mean missing, as NA,?; numbers by their value")] = (),
) -> Response:
    """Store a table: CSV with a header line, gzipped CSV or Parquet, as the body's bytes. Columns are typed while it arrives."""
    check_name(name)
    check_kind(request)
    priced = None if costs is None else prices_of(parse_costs(costs, settings))
    await request.app.state.kernels.ready("reading")
    async with request.app.state.uploads.one():
        table, sent = await read_table(request, settings, Choices(drop, numeric, missing))
        store = datasets.store
        found, replayed = await within(STORING, WORK, lambda: store(database, caller.actor, name, table, sent, priced))
    headers = {"Location": f"/v1/admin/datasets/{name}"} | ({"Idempotent-Replayed": "true"} if replayed else {})
    return reply(found, 200 if replayed else 201, headers)


@router.get("", response_model=DatasetsShown)
async def list_datasets(
    caller: Caller,
    database: TheDatabase,
    limit: Limit = 20,
    cursor: NameCursor = "",
) -> Response:
    """Data sets by name."""
    found = await in_thread(datasets.listed, database, cursor, limit + 1)
    return reply({"items": found[:limit], "next": found[limit - 1]["name"] if len(found) > limit else None})


@router.get("/{name}", response_model=DatasetShown, responses=documented(DatasetNotFound))
async def read_dataset(name: str, caller: Caller, database: TheDatabase) -> Response:
    """A data set: per column its kind, range or categories, how many are missing, and its cost."""
    return reply(await in_thread(datasets.describe, database, find_name(name)))


@router.put("/{name}/costs", response_model=DatasetShown, responses=documented(*BODY, DatasetNotFound))
async def set_dataset_costs(
    name: str,
    body: Annotated[Costs, Body(examples=[{"age": 1, "cholesterol": {"cost": 7.27, "group": "blood", "cost_in_group": 5.17}}])],
    caller: Caller,
    database: TheDatabase,
) -> Response:
    """Price the columns, for the jobs that come: a number each, or an object. What is not named costs 1."""
    return reply(await in_thread(datasets.set_costs, database, caller.actor, find_name(name), prices_of(body)))


@router.delete("/{name}", status_code=204, responses=documented(DatasetNotFound, DatasetInUse))
async def delete_dataset(name: str, caller: Caller, database: TheDatabase) -> Response:
    """Delete a data set. Models that were trained on it stay."""
    await in_thread(datasets.delete, database, caller.actor, find_name(name))
    return Response(status_code=204)


class Turns:
    """Places for uploads that are read beside each other: each needs memory. Whoever waits is not read meanwhile."""

    def __init__(self, places: int, most: int) -> None:
        self._places, self._most = asyncio.Semaphore(places), most
        self._waiting = 0

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """A place, or Busy: at once where too many wait, else when none came free in time."""
        if self._waiting >= self._most:
            raise _uploading()
        self._waiting += 1
        try:
            async with asyncio.timeout(WAITING):
                await self._places.acquire()
        except TimeoutError:
            raise _uploading() from None
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            self._places.release()


def _uploading() -> Busy:
    return Busy("Other tables are being uploaded: wait, and send it again.")


def check_kind(request: Request) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if kind not in TABLES | ALSO or coding not in ("identity", "gzip"):
        raise UnsupportedMediaType("Send the table's bytes as they are: text/csv, application/gzip or application/vnd.apache.parquet.")


def parse_costs(text: str, settings: Settings) -> Costs:
    sent = parse(text.encode(), settings, settings.max_fields)
    try:
        return COSTS.validate_python(sent)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        raise RequestValidationError([{**fault, "loc": ("query", "costs", *fault["loc"])} for fault in faults], body=sent) from None


async def read_table(request: Request, settings: Settings, choices: Choices) -> tuple[Columns, int]:
    """The table in the body, and how many bytes were sent. A block is parsed in a thread while the next one arrives."""
    loop, sent = asyncio.get_running_loop(), 0
    limits = Limits(
        settings.max_dataset_unpacked,
        settings.max_dataset_rows,
        settings.max_dataset_columns,
        settings.max_categories,
        settings.max_field,
        settings.max_dataset_memory,
    )
    reader = Reader(limits, choices=choices)
    parsing: asyncio.Future[None] | None = None
    try:
        async for block in in_blocks(stream_body(request, settings.max_dataset)):
            if parsing is not None:
                await parsing
            parsing = loop.run_in_executor(PARSING, reader.feed, block)
            sent += len(block)
        if parsing is not None:
            await parsing
        return await loop.run_in_executor(PARSING, reader.finish), sent
    except Rejected as error:
        raise refusal(error) from None
    finally:
        if parsing is not None:
            await asyncio.wait([parsing])
        await loop.run_in_executor(PARSING, reader.close)


async def in_blocks(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Small parts put together: a hop to a thread for each would cost more than reading it."""
    gathered, size = [], 0
    async for part in parts:
        gathered.append(part)
        size += len(part)
        if size >= BLOCK:
            yield b"".join(gathered)
            gathered, size = [], 0
    if gathered:
        yield b"".join(gathered)


def refusal(error: Rejected) -> Problem:
    """A table that cannot be taken, with the row and column at fault where they are known; or a parameter that does not fit it."""
    if error.choice is not None:
        return InvalidRequest(f"{error.choice}: {error.message}.")
    sentence = error.message[:1].upper() + error.message[1:] + "."
    where = {"row": error.row, "column": error.column, "limit": error.limit}
    return (TooLarge if error.too_large else BadTable)(sentence, **{name: value for name, value in where.items() if value is not None})


def find_name(name: str) -> str:
    if not is_name(name):
        raise DatasetNotFound()
    return name
