"""Keys and the audit log over HTTP, for admins."""

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import AfterValidator, AwareDatetime, Field

from frugal.service.api.access import Caller, TheDatabase, TheKeys
from frugal.service.api.bodies import AdminRoute
from frugal.service.api.paging import Cursor, Limit, parse_cursor, parse_id
from frugal.service.api.problems import BODY, always, documented
from frugal.service.api.shapes import Strict, example
from frugal.service.api.showing import reply
from frugal.service.api.shown import Moment
from frugal.service.errors import Conflict, Forbidden, KeyNotFound
from frugal.service.owners import issuing
from frugal.service.owners.issuing import Role
from frugal.service.store import audit
from frugal.service.store.tables import iso
from frugal.service.store.threads import in_thread

router = APIRouter(prefix="/v1/admin", tags=["admin"], route_class=AdminRoute, responses=always(Forbidden))


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("expected a time before the year 10000") from None


Expiry = Annotated[AwareDatetime, Field(strict=False), AfterValidator(_in_utc)]


class NewKey(Strict):
    """Whose key, what it may do, and until when."""

    model_config = example({"owner": "clinic", "role": "client", "expires_at": "2099-12-31T00:00:00Z"})

    owner: Annotated[str, Field(max_length=64)]
    role: Role = "client"
    expires_at: Annotated[AwareDatetime, Field(strict=False), AfterValidator(_in_utc)] | None = Field(
        None, description="RFC 3339; null: never"
    )


class KeyShown(Strict):
    id: str
    owner: str
    role: Role
    created_at: Moment
    expires_at: Moment | None
    revoked_at: Moment | None


class KeyMade(KeyShown):
    key: str = Field(description="the key itself, shown here and never again")


class KeysShown(Strict):
    items: list[KeyShown]
    next: str | None


class DeedShown(Strict):
    id: str
    at: Moment
    owner: str
    key_id: str | None
    request_id: str | None
    action: str
    subject: str
    details: dict[str, Any]


class DeedsShown(Strict):
    items: list[DeedShown]
    next: str | None


@router.post("/keys", status_code=201, response_model=KeyMade, responses=documented(*BODY, Conflict))
async def create_key(body: NewKey, caller: Caller, database: TheDatabase, keys: TheKeys) -> Response:
    """Make a key. The reply is the only place where it stands in the clear."""
    made = await in_thread(issuing.create, database, caller.actor, body.owner, body.role, body.expires_at)
    keys.forget()
    return reply(made, 201, {"Location": f"/v1/admin/keys/{made['id']}", "Cache-Control": "no-store"})


@router.get("/keys", response_model=KeysShown)
async def list_keys(caller: Caller, database: TheDatabase, limit: Limit = 20, cursor: Cursor = None) -> Response:
    """All keys in the order they were made, without what they are."""
    found = await in_thread(issuing.listed, database, parse_cursor(cursor), limit + 1)
    return reply({"items": found[:limit], "next": found[limit - 1]["id"] if len(found) > limit else None})


@router.delete("/keys/{id}", status_code=204, responses=documented(KeyNotFound))
async def revoke_key(id: str, caller: Caller, database: TheDatabase, keys: TheKeys) -> Response:
    """Revoke a key: it counts no more, in other processes after five seconds at most."""
    found = parse_id(id)
    if found is None:
        raise KeyNotFound("There is no key with this id: GET /v1/admin/keys lists them.")
    await in_thread(issuing.revoke, database, caller.actor, found)
    keys.forget()
    return Response(status_code=204)


@router.get("/audit", response_model=DeedsShown)
async def list_audit(caller: Caller, database: TheDatabase, limit: Limit = 20, cursor: Cursor = None) -> Response:
    """Who published, moved, retired, revoked and deleted, newest first."""
    before = parse_cursor(cursor)
    rows = await in_thread(database.read, lambda db: audit.listed(db, before, limit + 1))
    found = [_deed(row) for row in rows]
    return reply({"items": found[:limit], "next": found[limit - 1]["id"] if len(found) > limit else None})


def _deed(row: Any) -> dict[str, Any]:
    at: datetime = row.at
    return {
        "id": str(row.id),
        "at": iso(at),
        "owner": row.owner,
        "key_id": str(row.key_id) if row.key_id else None,
        "request_id": row.request_id,
        "action": row.action,
        "subject": row.subject,
        "details": row.details,
    }
