"""A server's sockets: bound early, on every address of a host; what is in the way is told in a sentence with the way out."""

import errno
import socket
import threading

import pytest

from frugal.service.connections.listening import bind, close, free_port, refusal, when_listening


@pytest.fixture
def busy():
    """A port that somebody else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


@pytest.mark.parametrize(("level", "how"), [("1", "make run"), (None, "frugal serve")])
def test_a_busy_port_is_one_sentence_with_the_way_out(busy, monkeypatch, level, how):
    monkeypatch.setenv("MAKELEVEL", level) if level else monkeypatch.delenv("MAKELEVEL", raising=False)
    with pytest.raises(ValueError, match=f"^Port {busy} is in use. Choose another: FRUGAL_PORT=([0-9]+) {how}$") as told:
        bind("127.0.0.1", busy)
    other = int(str(told.value).partition("FRUGAL_PORT=")[2].split()[0])
    assert other > busy
    close(bind("127.0.0.1", other))


def test_the_port_that_is_offered_is_free():
    for port in range(20_000, 30_000, 7):
        try:
            with socket.create_server(("127.0.0.1", port)), socket.create_server(("127.0.0.1", port + 1)):
                assert free_port("127.0.0.1", port) > port + 1
                return
        except OSError:  # somebody has one of the two
            continue
    pytest.fail("no two ports side by side are free")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EACCES, "Port 80 needs more rights than this user has. Choose one above 1023: FRUGAL_PORT=8000 "),
        (errno.EADDRNOTAVAIL, "192.0.2.1 is not an address of this machine. Choose another: FRUGAL_HOST=127.0.0.1 "),
        (errno.ENOBUFS, "cannot listen on 192.0.2.1 port 80: no room"),
    ],
)
def test_other_refusals_are_sentences_too(number, words):
    assert refusal(OSError(number, "no room"), "192.0.2.1", 80).startswith(words)


def test_a_host_that_is_not_there_is_told():
    with pytest.raises(ValueError, match=r"192\.0\.2\.1 is not an address of this machine"):
        bind("192.0.2.1", 0)
    with pytest.raises(ValueError, match=r"no\.such\.invalid is not a name or address that this machine knows"):
        bind("no.such.invalid", 0)


def test_every_address_of_a_host_is_bound_to_one_port():
    sockets = bind("localhost", 0)
    try:
        assert len({each.getsockname()[1] for each in sockets}) == 1
        assert {each.getsockname()[0] for each in sockets} <= {"127.0.0.1", "::1"}
    finally:
        close(sockets)


def test_it_is_told_when_somebody_listens_and_not_before():
    told = threading.Event()
    sockets = bind("127.0.0.1", 0)
    try:
        when_listening(sockets[0], told.set)
        assert not told.wait(0.2)  # bound, and nobody takes connections
        sockets[0].listen()
        assert told.wait(30)
    finally:
        close(sockets)
