"""What one connection may send, how slowly, and what it is told: raw sockets against a real server process."""

import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from frugal.service.connections.protocol import FRAMING, HEAD, HEADERS, PIPELINED
from tests.journeys.processes import Server, serving
from tests.raw import HOST, LIVEZ, Raw, Reply, seconds_to_live

SLOW = {"FRUGAL_HEAD_TIMEOUT": "2", "FRUGAL_BODY_TIMEOUT": "1", "FRUGAL_IDLE_TIMEOUT": "1"}
OPENING = b'{"model": "nowhere"}'
CHUNKED = b"POST /v1/sessions HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = 64 * 1024 * 1024  # bytes that no rule lets through
UPLOAD = b"POST /v1/admin/datasets?name=a HTTP/1.1\r\n" + HOST + b"Content-Length: 2000000\r\n\r\na,b\n"
NEVER = 20.0  # seconds after which what should have ended has not


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("connections")
    with serving(folder, f"sqlite:///{folder / 'frugal.db'}") as server:
        yield server


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose time-outs are a second or two."""
    folder = tmp_path_factory.mktemp("hasty")
    with serving(folder, f"sqlite:///{folder / 'frugal.db'}", **SLOW) as server:
        yield server


def head(size: int, line: bytes = b"GET /livez HTTP/1.1\r\n") -> bytes:
    """A head of exactly so many bytes."""
    start = line + HOST + b"X: "
    return start + b"a" * (size - len(start) - 4) + b"\r\n\r\n"


def test_a_head_may_have_64_kib_and_not_a_byte_more(server: Server) -> None:
    with Raw(server.port) as raw:
        assert raw.send(head(HEAD)).reply().status == 200
        assert raw.send(head(HEAD)).reply().status == 200  # each request is counted anew
        assert raw.send(head(HEAD + 1)).reply().problem(431, "headers-too-large")["limit"] == HEAD
        assert raw.ended()


@pytest.mark.parametrize("packet", [1000, 7919, 300_000])
def test_a_head_is_counted_whatever_its_packets(server: Server, packet: int) -> None:
    for size, status in ((HEAD, 200), (HEAD + 1, 431)):
        with Raw(server.port) as raw:
            data = head(size)
            for at in range(0, len(data), packet):
                raw.try_send(data[at : at + packet])
            assert raw.reply().status == status


def test_a_header_that_never_ends_stalls_nobody(server: Server) -> None:
    with Raw(server.port) as raw:
        raw.send(b"GET / HTTP/1.1\r\nX: ")
        while raw.flood(b"a" * 262_144, ENDLESS) == ENDLESS:
            assert seconds_to_live(server.port) < 1
        assert raw.reply().problem(431, "headers-too-large")


@pytest.mark.parametrize(
    ("sent", "again", "status", "slug"),
    [
        (b"GET /", b"a" * 8192, 414, "uri-too-long"),
        (b"GET /?", b"a=b&" * 2048, 414, "uri-too-long"),
        (b"GET / HTTP/1.1\r\n" + HOST, b"a: b\r\n", 431, "headers-too-large"),
        (b"GET / HTTP/1.1\r\n" + HOST + b"X", b"X" * 8192, 431, "headers-too-large"),
        (b"", b"\r\n" * 4096, 431, "headers-too-large"),
        (CHUNKED + b"1;", b"x=" + b"y" * 8190, 400, "bad-request"),
        (CHUNKED + b"1", b";a" * 4096, 400, "bad-request"),
        (CHUNKED + b"2\r\n{}\r\n0\r\nX: ", b"y" * 8192, 400, "bad-request"),
        (CHUNKED + b"2\r\n{}\r\n0\r\n", b"X: y\r\n" * 1000, 400, "bad-request"),
        (CHUNKED, b"1" + b";aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" + b"\r\n \r\n", 400, "bad-request"),
    ],
    ids=["path", "query", "headers", "name", "blank-lines", "extension", "extensions", "trailer", "trailers", "extension-per-chunk"],
)
def test_whatever_never_ends_is_ended(server: Server, sent: bytes, again: bytes, status: int, slug: str) -> None:
    with Raw(server.port) as raw:
        assert raw.send(sent).flood(again, ENDLESS) < ENDLESS
        assert raw.reply().problem(status, slug)
        assert raw.ended()


def test_headers_are_counted(server: Server) -> None:
    with Raw(server.port) as raw:
        many = b"".join(b"X-%d: y\r\n" % i for i in range(HEADERS))
        assert raw.send(b"GET /livez HTTP/1.1\r\n" + many + b"\r\n").reply().status == 200
        assert raw.send(b"GET /livez HTTP/1.1\r\n" + many + HOST + b"\r\n").reply().problem(431, "headers-too-large")["limit"] == HEADERS


def test_small_chunks_are_not_counted_as_lines_without_end(server: Server) -> None:
    body = b'{"model": "nowhere", "reference": "' + b" " * (FRAMING // 4) + b'"}'
    with Raw(server.port) as raw:
        raw.send(CHUNKED + b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n")
        assert raw.reply().problem(422, "invalid-request")  # so long a reference: it was read to its end
        assert raw.send(LIVEZ).reply().status == 200


def test_small_chunks_earn_no_long_trailer(server: Server) -> None:
    with Raw(server.port) as raw:
        raw.send(CHUNKED + b"1\r\n \r\n" * 20_000 + b"0\r\nX: " + b"y" * (FRAMING + 32_768) + b"\r\n\r\n")
        raw.reply().problem(400, "bad-request")


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\n\r\n",
        b"GET http://x HTTP/1.1\r\n\r\n",
        b"CONNECT localhost:80 HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: a\x00b\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: a\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\r\n: b\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"POST / HTTP/1.1\r\nContent-Length: -3\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS on a port that has none
    ],
)
def test_what_is_no_http_is_told_so_as_a_problem(server: Server, sent: bytes) -> None:
    with Raw(server.port) as raw:
        said = raw.send(sent).reply().problem(400, "bad-request")
        assert "nonsense" not in str(said)
        assert raw.ended()


def test_a_broken_chunk_is_a_problem_of_the_request_it_belongs_to(server: Server) -> None:
    with Raw(server.port) as raw:
        assert raw.send(CHUNKED + b"zz\r\n").reply().problem(400, "bad-request")
        assert raw.ended()


def test_a_fault_is_told_after_the_replies_that_are_due(server: Server) -> None:
    with Raw(server.port) as raw:
        raw.send(LIVEZ * 3 + b"nonsense\r\n\r\n")
        assert [raw.reply().status for _ in range(4)] == [200, 200, 200, 400]
        assert raw.ended()
    with Raw(server.port) as raw:  # the third has a body that breaks off in nonsense
        raw.send(LIVEZ * 2 + CHUNKED + b"zz\r\n")
        assert [raw.reply().status for _ in range(3)] == [200, 200, 400]
        assert raw.ended()


def test_no_more_requests_wait_on_one_connection_than_may(server: Server) -> None:
    with Raw(server.port) as raw:
        raw.send(LIVEZ * (PIPELINED + 1))
        assert [raw.reply().status for _ in range(PIPELINED + 1)] == [200] * (PIPELINED + 1)
    with Raw(server.port) as raw:
        raw.send(LIVEZ * 1000)
        replies = [raw.reply().status for _ in range(PIPELINED + 2)]
        assert replies == [200] * (PIPELINED + 1) + [400]
        assert raw.ended()


def test_an_upgrade_that_is_not_spoken_is_served_as_it_is(server: Server) -> None:
    upgrade = b"GET /livez HTTP/1.1\r\n" + HOST + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"
    with Raw(server.port) as raw:
        assert raw.send(upgrade + LIVEZ).reply().status == 200
        assert raw.reply().status == 200
        assert raw.send(LIVEZ).reply().status == 200


OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
SMUGGLED = b"GET /metrics HTTP/1.1\r\n" + HOST + b"\r\n"


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize("packet", [1, 50, 100_000])
@pytest.mark.parametrize(("body", "status"), [(OPENING, 404), (SMUGGLED, 422)], ids=["a body", "a request in it"])
def test_the_body_beside_an_upgrade_is_a_body(server: Server, body: bytes, status: int, packet: int, chunked: bool) -> None:
    framing = b"Transfer-Encoding: chunked\r\n" if chunked else b"Content-Length: %d\r\n" % len(body)
    sent = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if chunked else body
    head = b"POST /v1/sessions HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n" + OFFER + framing + b"\r\n"
    data = head + sent + LIVEZ
    with Raw(server.port) as raw:
        for at in range(0, len(data), packet):
            raw.send(data[at : at + packet])
        assert raw.reply().status == status
        alive = raw.reply()
        assert (alive.status, b"alive" in alive.body) == (200, True)
        assert raw.send(LIVEZ).reply().status == 200


@pytest.mark.parametrize("coding", [b"gzip, chunked", b"gzip", b"chunked, chunked", b"identity"])
def test_codings_that_are_not_spoken_are_refused(server: Server, coding: bytes) -> None:
    with Raw(server.port) as raw:
        head = b"POST /v1/sessions HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: " + coding + b"\r\n\r\n"
        assert raw.send(head).reply().problem(400, "bad-request")


def test_the_host_of_a_target_that_is_a_whole_url_counts(server: Server) -> None:
    for target, status in (
        (b"http://evil.example/v1/models", 403),
        (b"http://localhost/v1/models", 200),
        (b"HTTP://u@localhost/v1/models", 403),
    ):
        with Raw(server.port) as raw:
            assert raw.send(b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"\r\n").reply().status == status


def test_trailers_are_no_headers_of_this_request_or_the_next(server: Server) -> None:
    body = b"%x\r\n%s\r\n0\r\nX-Request-ID: trailer\r\nVia: trailer\r\n\r\n" % (len(OPENING), OPENING)
    with Raw(server.port) as raw:
        raw.send(CHUNKED + body + LIVEZ)
        first, second = raw.reply(), raw.reply()
        assert first.problem(404, "model-not-found")["request_id"] != "trailer"
        assert (second.status, second.headers["x-request-id"] != "trailer") == (200, True)


def test_a_client_that_says_no_more_still_gets_its_replies(server: Server) -> None:
    with Raw(server.port) as raw:
        raw.send(LIVEZ * 3)
        raw.socket.shutdown(socket.SHUT_WR)
        assert [raw.reply().status for _ in range(3)] == [200] * 3
        assert raw.ended()
    with Raw(server.port) as raw:
        raw.send(LIVEZ[:-2])
        raw.socket.shutdown(socket.SHUT_WR)
        assert raw.ended()
    with Raw(server.port) as raw:
        raw.send(CHUNKED + b"5\r\nab")
        raw.socket.shutdown(socket.SHUT_WR)
        assert raw.ended()


def test_a_refusal_reaches_a_client_that_goes_on_sending(server: Server) -> None:
    with Raw(server.port) as raw:
        raw.send(b"POST /nowhere HTTP/1.1\r\n" + HOST + b"Content-Length: 30000000\r\n\r\n")
        for _ in range(300):
            raw.try_send(b"x" * 100_000)
        assert raw.reply().problem(404, "not-found")
        assert raw.send(LIVEZ).reply().status == 200  # what was announced was sent: the connection goes on


def dribble(raw: Raw, byte: bytes) -> float:
    """A byte every fifth of a second, until the server closes; says how long it took."""
    begun = time.monotonic()
    raw.socket.settimeout(0.2)
    while time.monotonic() - begun < NEVER:
        raw.try_send(byte)
        try:
            part = raw.socket.recv(65_536)
        except TimeoutError:
            continue
        except ConnectionResetError:
            break
        if not part:
            break
        raw.read += part
    raw.socket.settimeout(60)
    return time.monotonic() - begun


@pytest.mark.parametrize(
    ("sent", "byte", "status"),
    [
        (b"", b"\r\n", b"408"),
        (b"G", b"", b"408"),
        (b"GET /", b"a", b"408"),
        (b"GET / HTTP/1.1\r\nX: ", b"a", b"408"),
        (b"GET / HTTP/1.1\r\n", b"a: b\r\n", b"408"),
        (LIVEZ + b"GET / HTTP/1.1\r\nX: ", b"a", b"408"),
        (CHUNKED + b"fff\r\n", b"1", b"408"),
        (CHUNKED, b"1\r\n1\r\n", b"408"),
        (CHUNKED + b"1;", b"a", b"408"),
        (b"POST /v1/sessions HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n", b"", b"408"),
        (b"POST /v1/sessions HTTP/1.1\r\n" + HOST + b"Content-Length: 999999\r\n\r\n", b"1", b"408"),
        (b"POST /v1/admin/datasets?name=a HTTP/1.1\r\n" + HOST + b"Content-Length: 999\r\n\r\n", b"a", b"408"),
        (UPLOAD + b"1,2\n" * 250_000, b"", b"408"),
        (UPLOAD + b"1,2\n" * 250_000, b"1", b"408"),
    ],
)
def test_slow_heads_and_slow_bodies_end_in_a_problem(hasty: Server, sent: bytes, byte: bytes, status: bytes) -> None:
    with Raw(hasty.port) as raw:
        raw.send(sent)
        assert 0.9 < dribble(raw, byte) < NEVER
        assert b"HTTP/1.1 " + status in raw.read
        assert b"urn:frugal:problem:request-timeout" in raw.read


@pytest.mark.parametrize("sent", [b"", LIVEZ], ids=["never used", "between requests"])
def test_an_idle_connection_is_closed_without_a_word(hasty: Server, sent: bytes) -> None:
    with Raw(hasty.port) as raw:
        begun = time.monotonic()
        raw.send(sent)
        if sent:
            assert raw.reply().status == 200
        assert raw.ended()
        assert 0.9 < time.monotonic() - begun < NEVER


@pytest.mark.parametrize("announced", [b"Content-Length: 999999\r\n", b"Transfer-Encoding: chunked\r\n"])
def test_the_rest_of_a_body_that_nobody_wants_is_not_waited_for(hasty: Server, announced: bytes) -> None:
    with Raw(hasty.port) as raw:
        raw.send(b"POST /nowhere HTTP/1.1\r\n" + HOST + announced + b"\r\n")
        assert raw.reply().status == 404
        assert dribble(raw, b"1") < NEVER


def test_a_client_that_takes_no_reply_is_given_up(hasty: Server) -> None:
    with Raw(hasty.port) as raw:
        raw.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        ask = b"GET /openapi.json HTTP/1.1\r\n" + HOST + b"\r\n"
        end = time.monotonic() + 30
        while raw.try_send(ask):  # until it no longer reads, and then resets
            assert time.monotonic() < end
            time.sleep(0.01)


def test_a_client_that_takes_its_replies_slowly_gets_them_all(hasty: Server) -> None:
    ask = b"GET /openapi.json HTTP/1.1\r\n" + HOST + b"\r\n"
    with Raw(hasty.port) as raw:
        raw.send(ask * PIPELINED)
        begun = time.monotonic()
        for _ in range(PIPELINED):
            assert raw.reply().status == 200
            time.sleep(0.1)
        assert time.monotonic() - begun > 3  # three times the patience with one that takes nothing


def test_time_on_a_connection_is_counted_anew_for_every_request(hasty: Server) -> None:
    with Raw(hasty.port) as raw:
        for _ in range(4):
            raw.send(LIVEZ[:10])
            time.sleep(0.8)
            assert raw.send(LIVEZ[10:]).reply().status == 200


def test_past_the_limit_the_longest_idle_connection_makes_room(tmp_path: Path) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(serving(tmp_path, f"sqlite:///{tmp_path / 'frugal.db'}", FRUGAL_MAX_CONNECTIONS="20"))
        idle = [stack.enter_context(Raw(server.port)) for _ in range(20)]
        assert [one.send(LIVEZ).reply().status for one in reversed(idle)] == [200] * 20
        idle += [stack.enter_context(Raw(server.port)) for _ in range(15)]
        assert all(one.ended() for one in idle[-20:-15])  # the first to have been served, and so the longest idle
        assert idle[0].send(LIVEZ).reply().status == 200
        idle += [stack.enter_context(Raw(server.port)) for _ in range(60)]
        assert idle[0].ended()
        assert idle[-1].send(LIVEZ).reply().status == 200
        assert seconds_to_live(server.port) < 5


def test_where_every_connection_works_one_more_is_told_to_wait(tmp_path: Path) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(serving(tmp_path, f"sqlite:///{tmp_path / 'frugal.db'}", FRUGAL_MAX_CONNECTIONS="5"))
        working = [stack.enter_context(Raw(server.port)).send(CHUNKED + b"1\r\n{\r\n") for _ in range(5)]  # each waits for its body
        for _ in range(3):
            said = one_livez(server)
            said.problem(503, "busy")
            assert said.headers["retry-after"] == "1"
        working[0].socket.close()
        deadline = time.monotonic() + 20
        while one_livez(server).status != 200:
            assert time.monotonic() < deadline


def one_livez(server: Server) -> Reply:
    with Raw(server.port) as raw:
        return raw.send(LIVEZ).reply()


def test_thousands_of_idle_connections_hinder_nobody(server: Server) -> None:
    def connect(_: int) -> socket.socket:
        return socket.create_connection(("127.0.0.1", server.port), timeout=60)

    with ThreadPoolExecutor(8) as pool:
        idle = list(pool.map(connect, range(3000)))
    try:
        assert seconds_to_live(server.port) < 5
    finally:
        for each in idle:
            each.close()


def test_what_is_refused_is_counted_and_logged(server: Server) -> None:
    with Raw(server.port) as raw:
        id = raw.send(b"nonsense\r\n\r\n").reply().problem(400, "bad-request")["request_id"]
    with server.client() as client:
        counted = re.search(r'frugal_requests_total\{method="OTHER",route="unmatched",status="400"\} (\S+)', client.get("/metrics").text)
    assert counted is not None
    assert float(counted[1]) >= 1
    deadline = time.monotonic() + 10
    while id not in server.said:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert "nonsense" not in server.said
