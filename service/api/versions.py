"""Published models: names, versions, aliases. What clients may see, and what admins do with them."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from pydantic import Field

from frugal.service.api.access import Caller, TheDatabase, TheSettings
from frugal.service.api.bodies import AdminRoute, ClientRoute, read_body
from frugal.service.api.paging import Limit, NameCursor
from frugal.service.api.problems import BODY, always, documented
from frugal.service.api.shapes import Strict, example
from frugal.service.api.showing import reply
from frugal.service.api.shown import Moment
from frugal.service.errors import BadArchiveSent, Forbidden, InvalidRequest, ModelNotFound, UnsupportedMediaType
from frugal.service.registry import versions as registry
from frugal.service.store.threads import WORK, in_thread, within

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=ClientRoute, responses=always())
admin = APIRouter(prefix="/v1/admin/models", tags=["admin"], route_class=AdminRoute, responses=always(Forbidden))
PUBLISHING = 120.0  # seconds to check and store an archive
BINARY = ("", "application/octet-stream", "application/x-safetensors", "application/vnd.safetensors")
Number = Annotated[int, Path(ge=1, le=999_999_999)]


class VersionBrief(Strict):
    name: str
    version: int
    aliases: list[str]
    sha256: str
    size: int
    created_at: Moment
    retired_at: Moment | None


class ModelShown(Strict):
    """A name with its versions and aliases."""

    name: str
    versions: list[VersionBrief]
    aliases: dict[str, int]


class ModelsShown(Strict):
    items: list[ModelShown]
    next: str | None


class PointShown(Strict):
    """When to stop, and what that gave on rows that did not grow the trees: means over the cases."""

    cost: float
    error: float = Field(description="the share of wrong labels; or what mistakes cost, where they have prices")
    log_loss: float
    confidence: float = Field(description="stop once the leading label's probability reaches this; 1: never by that")
    cap: float | None = Field(description="stop rather than spend more than this on a case; null: no such limit")
    early: float = Field(description="the share of cases that were over before their trees were")


class FrontierShown(Strict):
    """A model's operating points by rising mean cost: `aim` takes the dearest that is not above it."""

    points: list[PointShown]
    default: int = Field(description="the position, from 0, of the point that holds where a caller says nothing")


class VersionShown(VersionBrief):
    """All that is told of a version: what it asks, what that costs, how it did on rows it never saw."""

    learner: str | None
    parameters: dict[str, Any]
    classes: list[str]
    trees: int
    vote: str
    order: str
    stop: str
    delayed: str
    features: list[dict[str, Any]] = Field(alias="schema")
    costs: list[dict[str, Any]]
    frontier: FrontierShown | None = Field(description="null where the model has no operating points")
    metrics: dict[str, Any]
    curve: list[dict[str, Any]]


class AliasBody(Strict):
    """The version that an alias is to stand for."""

    model_config = example({"version": 1})

    version: Annotated[int, Field(ge=1, le=999_999_999)]


@router.get("", response_model=ModelsShown)
async def list_models(
    caller: Caller,
    database: TheDatabase,
    limit: Limit = 20,
    cursor: NameCursor = "",
) -> Response:
    """Names in alphabetical order, each with its versions and aliases."""
    found = await in_thread(registry.models_after, database, limit + 1, None, cursor)
    return reply({"items": found[:limit], "next": found[limit - 1]["name"] if len(found) > limit else None})


@router.get("/{name}", response_model=ModelShown, responses=documented(ModelNotFound))
async def read_model(name: str, caller: Caller, database: TheDatabase) -> Response:
    """A name with its versions and aliases."""
    return reply(await in_thread(registry.model, database, name))


@router.get("/{name}/versions/{version}", response_model=VersionShown, responses=documented(InvalidRequest, ModelNotFound))
async def read_version(name: str, version: Number, caller: Caller, database: TheDatabase) -> Response:
    """A version: its schema, costs, metrics and the curve of cost against error."""
    return reply(await in_thread(registry.version, database, name, version))


@admin.post(
    "",
    status_code=201,
    response_model=VersionShown,
    responses=documented(*BODY, BadArchiveSent),
    openapi_extra={
        "requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
    },
)
async def publish_model(
    request: Request,
    caller: Caller,
    database: TheDatabase,
    settings: TheSettings,
    name: str,
    alias: str | None = None,
) -> Response:
    """Publish an archive (the file that `frugal train` writes) as the next version of a name, and move an alias to it if one is named."""
    registry.check_name(name)
    if alias is not None:
        registry.check_name(alias, "alias")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() not in BINARY:
        raise UnsupportedMediaType("Send the archive's bytes as they are, with Content-Type: application/octet-stream.")
    data = await read_body(request, settings.max_upload)
    publish = partial(registry.publish, database, name, data, caller.actor, alias)
    found = await within(PUBLISHING, WORK, publish)
    return reply(found, 201, {"Location": f"/v1/models/{name}/versions/{found['version']}"})


@admin.put("/{name}/aliases/{alias}", response_model=ModelShown, responses=documented(*BODY, ModelNotFound))
async def set_alias(name: str, alias: str, body: AliasBody, caller: Caller, database: TheDatabase) -> Response:
    """Let an alias stand for a version. New sessions see it at once; running ones stay on their version."""
    await in_thread(registry.set_alias, database, name, alias, body.version, caller.actor)
    return reply(await in_thread(registry.model, database, name))


@admin.delete("/{name}/aliases/{alias}", status_code=204, responses=documented(ModelNotFound))
async def delete_alias(name: str, alias: str, caller: Caller, database: TheDatabase) -> Response:
    """Take an alias away."""
    await in_thread(registry.drop_alias, database, name, alias, caller.actor)
    return Response(status_code=204)


@admin.post("/{name}/versions/{version}/retire", response_model=VersionShown, responses=documented(InvalidRequest, ModelNotFound))
async def retire_version(name: str, version: Number, caller: Caller, database: TheDatabase) -> Response:
    """Take a version out of what the bare name means. Sessions on it go on."""
    return reply(await in_thread(registry.retire, database, name, version, caller.actor))
