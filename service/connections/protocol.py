"""HTTP/1.1 as the server speaks it: uvicorn's protocol, but counted and timed.

The parser copies an unfinished header with every packet that adds to it, so a header that never ends took all of the processor's time. Here
bytes are counted before the parser gets them, and each state of a connection has its limits:

    state        ends with           limits
    head         the blank line      HEAD bytes, HEADERS headers, `head_timeout` from the first byte
    body         its last byte       chunk lines and trailers: FRAMING bytes; the rest is counted and timed by whoever reads it
    rest         its last byte       what still comes of a body after the reply: `head_timeout`
    idle         the next byte       `idle_timeout`; `head_timeout` for a connection that has never sent anything
    reply        taken by the client `body_timeout` without progress, and BYTES_PER_SECOND

What breaks a rule gets a problem after the replies that are still due, and then the connection closes.
"""

import asyncio
import json
import logging
import math
from random import getrandbits
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from frugal.service import metrics
from frugal.service.api.problems import CONTENT_TYPE, members
from frugal.service.config import BYTES_PER_SECOND, Settings
from frugal.service.connections.watch import TICK, watch_of
from frugal.service.errors import BadRequest, HeadersTooLarge, Problem, RequestTimeout, UriTooLong

HEAD = 65_536  # bytes of a request's first line and headers together
HEADERS = 100
FRAMING = 65_536  # bytes of chunk lines and trailers beyond PER_CHUNK for each chunk
PER_CHUNK = 16
PIECE = 16_384  # bytes that the parser gets at once: what it was not told to stop at is no longer than this
PIPELINED = 32  # requests that wait for their turn on one connection; what comes after them is not read
DROPPED = 1_048_576  # bytes that are read from a client after it was refused
LINGER = 2.0  # seconds that a client has to take a refusal: closing at once, with bytes unread, would take it back
log = logging.getLogger("frugal")


class Guarded(HttpToolsProtocol):
    """One connection. Settings are those of the app."""

    def __init__(
        self, config: Config, server_state: ServerState, app_state: dict[str, Any], _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.settings: Settings = self.app.state.settings
        self.url = b""
        self.heading = True  # between requests or in a head; else in a body
        self.head = 0  # bytes of the head so far
        self.framing = 0  # bytes of the body so far that are none of its content, less what every chunk may have
        self.since = 0.0  # when the client began to keep us waiting
        self.fault: Problem | None = None  # why a callback stopped the parser
        self.refusal: Problem | None = None
        self.deaf = False  # what else comes is dropped
        self.dropped = 0.0  # bytes of that
        self.half_closed = False
        self.watch = watch_of(server_state, self.loop, self.settings.max_connections)
        self.until = math.inf  # when the connection is cut
        self.owed = 0  # bytes that the client has not taken
        self.patience: float = self.settings.body_timeout  # seconds that it still has
        self.working: RequestResponseCycle = None  # type: ignore[assignment]
        self._ended, self._content, self._parts = False, 0, 0  # of the piece that is being parsed
        self._offered = False  # an upgrade, which nobody takes, beside a body that is still to come
        self._repeating = False  # the parser is told again what kind of body it is

    @property
    def busy(self) -> bool:
        """Whether a request is being worked on."""
        return self.working is not None and not self.working.response_complete and not self.working.disconnected

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.since = self.loop.time()
        self.watch.admit(self)

    def eof_received(self) -> bool:  # type: ignore[override]
        """A client that has said all it had to say still gets its reply; one that stops in mid-request, or leaves a stream, is gone."""
        self.half_closed = True
        return self.busy and self.heading and not self.working.response_started

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.watch.forget(self)
        if self.busy:  # uvicorn tells the newest request, which may not be the one that is worked on
            self.working.disconnected = True
            self.working.message_event.set()

    def data_received(self, data: bytes) -> None:
        if self.deaf:
            self._drop(data)
            return
        if self.heading and not self.head:
            self.since = self.loop.time()
        if len(data) <= PIECE and self.head + len(data) <= HEAD:
            self._feed(data)
            return
        rest = memoryview(data)
        while rest and not self.deaf:
            size = min(PIECE, HEAD - self.head) if self.heading else PIECE
            if size == 0:
                self.refuse(self._too_long())
                return
            self._feed(rest[:size])
            rest = rest[size:]

    def _feed(self, data: "bytes | memoryview[int]") -> None:
        """Parse a piece, and count what it leaves unfinished."""
        in_body = not self.heading
        self._ended, self._content, self._parts = False, 0, 0
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:  # we speak nothing else: the request is served, and the next one may follow
            if self._offered:
                self._go_on_with_body()
            if len(data) > upgrade.args[0]:
                self._feed(data[upgrade.args[0] :])
            return
        except httptools.HttpParserError:
            self.refuse(self.fault or BadRequest("This is not HTTP/1.1 as RFC 9112 has it: check what you send, and what stands between."))
            return
        if self._ended:
            return
        if self.heading:
            self.head += len(data)
        elif in_body:
            self.framing = max(0, self.framing + len(data) - self._content - PER_CHUNK * self._parts)
            if self.framing > FRAMING:
                self.refuse(BadRequest(f"The lines between a body's chunks, or its trailers, are longer than {FRAMING:,} bytes."))

    def _go_on_with_body(self) -> None:
        """The parser ends a request that offers an upgrade with its head, and would take its body for the next request. Another one is told
        how long the body is, and takes it from here."""
        framing = [b"%s: %s\r\n" % header for header in self.headers if header[0] in (b"content-length", b"transfer-encoding")]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn's own has it
        self._offered, self._repeating = False, True
        self.parser.feed_data(b"POST / HTTP/1.1\r\n" + b"".join(framing) + b"\r\n")
        self._repeating = False

    def on_url(self, url: bytes) -> None:
        if not self._repeating:
            super().on_url(url)

    def on_message_begin(self) -> None:
        if self._repeating:
            return
        super().on_message_begin()
        if self._ended:  # in the same piece as the request before: how much of it is this one's is not known, but it has begun
            self.head = 1

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.heading or self._repeating:
            return  # a trailer: nothing that comes after the body says who sent it
        if len(self.headers) == HEADERS:
            self.fault = HeadersTooLarge(f"A request has at most {HEADERS} headers.", limit=HEADERS)
            raise ValueError
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._repeating:
            return
        if len(self.pipeline) == PIPELINED:
            self.fault = BadRequest(f"At most {PIPELINED} requests may wait for their replies on one connection.")
            raise ValueError
        if any(name == b"transfer-encoding" and value.strip().lower() != b"chunked" for name, value in self.headers):
            self.fault = BadRequest("A body's Transfer-Encoding can be chunked, and nothing else.")
            raise ValueError
        if not self.url.startswith((b"/", b"*")):
            self._take_host_from_target()
        self._offered = self.parser.should_upgrade() and any(
            name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0 \t")) for name, value in self.headers
        )
        super().on_headers_complete()
        self.heading, self.framing = False, 0

    def _take_host_from_target(self) -> None:
        """A target that is a whole URL names the host, whatever the header says (RFC 9112, 3.2.2)."""
        _, _, rest = self.url.partition(b"://")
        host = rest.partition(b"/")[0].partition(b"?")[0]
        self.headers[:] = [(b"host", host), *(header for header in self.headers if header[0] != b"host")]

    def on_body(self, body: bytes) -> None:
        self._content += len(body)
        self._parts += 1
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self._offered:
            return  # its body is still to come
        super().on_message_complete()
        self.heading, self.head, self._ended = True, 0, True

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self.working = cycle
        self.watch.works(self)
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """Uvicorn's, without a timer for each reply: the watch looks after idle connections."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
            return
        self.since = self.loop.time()
        self.watch.rests(self)
        if self.deaf or self.half_closed:
            self._part()
        elif not self.heading and any(name == b"transfer-encoding" for name, _ in self.headers):
            self.deaf, self.dropped = True, -math.inf  # all that comes in this time is dropped, which is cheaper than parsing chunks
            self.until = self.since + self.settings.head_timeout

    def refuse(self, problem: Problem) -> None:
        """Read nothing more; say why, after the replies that are still due, and close."""
        self.deaf, self.refusal = True, problem
        if not self.heading:
            self._give_up_body()
        if not self.busy:
            self._part()

    def _give_up_body(self) -> None:
        """The request whose body breaks a rule gets no reply but the refusal; where a reply has begun there is nothing more to say."""
        if self.pipeline and self.pipeline[0][0] is self.cycle:
            self.pipeline.popleft()
            return
        if self.cycle.response_started:
            self.refusal = None
        self.cycle.disconnected = True
        self.cycle.message_event.set()

    def _part(self) -> None:
        """Say the last word and close, once the client has taken it or has had its time."""
        if self.refusal is not None:
            self.transport.write(self._written(self.refusal))
        self.deaf, self.refusal = True, None
        if self.half_closed or not self.transport.can_write_eof():
            self.transport.close()
            return
        self.transport.write_eof()
        self.flow.resume_reading()
        self.until = self.loop.time() + LINGER

    def _drop(self, data: bytes) -> None:
        """A client that goes on sending after its refusal is read for a while, or it would not get to read that; then no more."""
        self.dropped += len(data)
        if self.dropped > DROPPED:
            self.flow.pause_reading()

    def look(self, now: float) -> None:
        """Once a second: end what takes too long."""
        too_slow = self._takes_too_slowly(self.transport.get_write_buffer_size())
        if now >= self.until or too_slow:
            self.transport.abort()
        elif self.owed or self.deaf:
            return
        elif self.flow.read_paused:
            self.since = now  # it is we who keep the client waiting
        elif self.heading and self.head and now - self.since >= self.settings.head_timeout:
            seconds = f"{self.settings.head_timeout:g} seconds"
            self.refuse(RequestTimeout(f"The first line and the headers of a request have {seconds} to arrive: send it again."))
        elif not self.busy and now - self.since >= (self.settings.idle_timeout if self._idle else self.settings.head_timeout):
            self.transport.close()

    @property
    def _idle(self) -> bool:
        """Between two requests; not before the first, not in a head, and not while a body that nobody wants still comes."""
        return self.heading and not self.head and self.cycle is not None

    def _takes_too_slowly(self, owed: int) -> bool:
        """Whether our patience is at its end: it is `body_timeout` seconds, and grows by what the client takes of what it is sent."""
        taken, self.owed = max(0, self.owed - owed), owed
        if not owed:
            self.patience = self.settings.body_timeout
            return False
        self.patience = min(self.settings.body_timeout, self.patience + taken / BYTES_PER_SECOND) - TICK
        return self.patience <= 0

    def _too_long(self) -> Problem:
        if len(self.url) > HEAD // 2:
            return UriTooLong(f"A request's first line and headers together have at most {HEAD:,} bytes: shorten the address.", limit=HEAD)
        return HeadersTooLarge(f"A request's first line and headers together have at most {HEAD:,} bytes: send fewer.", limit=HEAD)

    def _written(self, problem: Problem) -> bytes:
        """A problem as bytes, counted and logged as replies of the app are."""
        id = f"{getrandbits(128):032x}"
        metrics.requests.labels("OTHER", "unmatched", problem.status).inc()
        if log.isEnabledFor(logging.INFO):
            self.app.state.lines.add({"request_id": id, "method": "OTHER", "route": "unmatched", "status": problem.status})
        body = json.dumps(members(problem, id)).encode()
        headers = {"content-type": CONTENT_TYPE, "content-length": str(len(body)), "connection": "close", "x-request-id": id}
        if problem.retry_after is not None:
            headers["retry-after"] = str(problem.retry_after)
        lines = b"".join(f"{name}: {value}\r\n".encode() for name, value in headers.items())
        return STATUS_LINE[problem.status] + lines + b"\r\n" + body
