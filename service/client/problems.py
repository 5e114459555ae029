"""What keeps a call from its answer.

ClientError
|-- Problem            the server said no: status, slug, detail and the whole body
`-- Unreachable        no answer came; `sent` says whether the request may have been done all the same
"""

from typing import Any

Json = dict[str, Any]


class ClientError(Exception):
    """Whatever keeps a call from its answer. `session_id` is the session that `run` had open, to go on with `resume`."""

    session_id: str | None = None


class Problem(ClientError):  # noqa: N818 - what the server calls it
    """The server's own words: `slug` is the end of the problem's type, `body` all of it."""

    def __init__(self, status: int, slug: str, detail: str, body: Json, retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.status, self.slug, self.detail, self.body, self.retry_after = status, slug, detail, body, retry_after


class Unreachable(ClientError):  # noqa: N818 - a state, like the above
    """No answer, after as many attempts as the client makes."""

    def __init__(self, message: str, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent
