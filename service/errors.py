"""What can go wrong, one class each: a name, a status and a sentence that says what to do next.

Problem
|-- InvalidRequest 422          the body or a parameter has the wrong shape
|   |-- WrongAnswer             a feature or value the version does not take
|   |-- KeyReused               an Idempotency-Key that came with another body
|   |-- BadArchiveSent          bytes that are no model
|   `-- BadTable                bytes that are no table
|-- BadRequest 400              no HTTP/1.1, or not as one connection may send it
|-- Unauthorized 401            no key, or none that counts
|-- Forbidden 403               an admin's route and a client's key
|   `-- ForeignRequest          open mode, and not from this machine
|-- NotFound 404                no such route
|   |-- SessionNotFound
|   |-- KeyNotFound
|   |-- DatasetNotFound
|   |-- JobNotFound
|   `-- ModelNotFound           no such name, alias or version
|-- MethodNotAllowed 405
|-- RequestTimeout 408          the head or the body stopped coming, or came too slowly
|-- TooLarge 413
|   |-- UriTooLong 414
|   `-- HeadersTooLarge 431
|-- UnsupportedMediaType 415
|-- Conflict 409
|   |-- AnswerConflict          another value is stored
|   |-- SessionClosed
|   |-- OverBudget
|   |-- DatasetExists           another table under this name
|   |-- DatasetInUse            a job needs it
|   `-- JobOver                 nothing to cancel
|-- TooManyRequests 429         more per second than a key may send
|   `-- TooManySessions         more open sessions than an owner may have
|-- Unavailable 503
|   |-- Busy                    more at once than the service takes
|   |-- DatabaseAway
|   |-- TooManyWatchers         more streams of events than a process holds
|   `-- NotReady
`-- Internal 500
    `-- VersionDamaged          a version's stored bytes cannot be loaded
"""

from typing import Any, ClassVar

AGAIN = "The database does not answer. Nothing that was acknowledged is lost: send the same request again."


class Problem(Exception):  # noqa: N818 - what clients are told is called a problem
    """An error that a client can be told of: RFC 9457's fields, and members of its own in `more`."""

    status: ClassVar[int]
    slug: ClassVar[str]
    title: ClassVar[str]
    retry_after: ClassVar[int | None] = None  # seconds

    def __init__(self, detail: str, **more: Any) -> None:
        super().__init__(detail)
        self.detail = detail
        self.more = more


class InvalidRequest(Problem):
    status, slug, title = 422, "invalid-request", "The request has the wrong shape"


class WrongAnswer(InvalidRequest):
    slug, title = "wrong-answer", "The version does not take this feature or value"


class KeyReused(InvalidRequest):
    slug, title = "idempotency-key-reused", "This Idempotency-Key came with another body"


class BadArchiveSent(InvalidRequest):
    slug, title = "bad-archive", "These bytes are not a model"


class BadTable(InvalidRequest):
    slug, title = "bad-table", "This table cannot be read"


class BadRequest(Problem):
    status, slug, title = 400, "bad-request", "This is not a request"


class Unauthorized(Problem):
    status, slug, title = 401, "unauthorized", "A key is needed"


class Forbidden(Problem):
    status, slug, title = 403, "forbidden", "This key may not do that"


class ForeignRequest(Forbidden):
    slug, title = "foreign-request", "Without keys, only this machine is served"


class NotFound(Problem):
    status, slug, title = 404, "not-found", "There is nothing here"


class SessionNotFound(NotFound):
    slug, title = "session-not-found", "No such session"

    def __init__(self) -> None:
        super().__init__("There is no session with this id: it was never opened here, was deleted, or is not yours.")


class KeyNotFound(NotFound):
    slug, title = "key-not-found", "No such key"


class DatasetNotFound(NotFound):
    slug, title = "dataset-not-found", "No such data set"

    def __init__(self) -> None:
        super().__init__("There is no data set of this name: GET /v1/admin/datasets lists what there is.")


class JobNotFound(NotFound):
    slug, title = "job-not-found", "No such job"

    def __init__(self) -> None:
        super().__init__("There is no job with this id: GET /v1/admin/training-jobs lists what there is.")


class ModelNotFound(NotFound):
    slug, title = "model-not-found", "No such model"


class MethodNotAllowed(Problem):
    status, slug, title = 405, "method-not-allowed", "This route does not take this method"


class RequestTimeout(Problem):
    status, slug, title = 408, "request-timeout", "The request did not arrive in time"


class TooLarge(Problem):
    status, slug, title = 413, "too-large", "The body is too large"


class UriTooLong(TooLarge):
    status, slug, title = 414, "uri-too-long", "The address is too long"


class HeadersTooLarge(TooLarge):
    status, slug, title = 431, "headers-too-large", "The headers are too large"


class UnsupportedMediaType(Problem):
    status, slug, title = 415, "unsupported-media-type", "The body is of the wrong type"


class Conflict(Problem):
    status, slug, title = 409, "conflict", "This does not fit what is stored"


class AnswerConflict(Conflict):
    slug, title = "answer-conflict", "Another answer is stored for this feature"


class SessionClosed(Conflict):
    slug, title = "session-closed", "The session is over"


class OverBudget(Conflict):
    slug, title = "over-budget", "This costs more than what remains of the budget"


class DatasetExists(Conflict):
    slug, title = "dataset-exists", "There is another data set of this name"


class DatasetInUse(Conflict):
    slug, title = "dataset-in-use", "A job needs this data set"


class JobOver(Conflict):
    slug, title = "job-over", "The job is over"


class TooManyRequests(Problem):
    status, slug, title, retry_after = 429, "too-many-requests", "Too many requests", 1


class TooManySessions(TooManyRequests):
    slug, title, retry_after = "too-many-sessions", "Too many open sessions", 60


class Unavailable(Problem):
    status, slug, title, retry_after = 503, "unavailable", "The service cannot answer now", 1


class Busy(Unavailable):
    slug, title = "busy", "Too much at once"


class DatabaseAway(Unavailable):
    slug, title = "database-away", "The database does not answer"

    def __init__(self, detail: str = AGAIN) -> None:
        super().__init__(detail)


class TooManyWatchers(Unavailable):
    slug, title, retry_after = "too-many-watchers", "Too many are watching jobs", 10


class NotReady(Unavailable):
    slug, title = "not-ready", "The service is not ready"


class Internal(Problem):
    status, slug, title = 500, "internal", "Something is wrong with the service"


class VersionDamaged(Internal):
    slug, title = "version-damaged", "A version cannot be loaded"
