"""The sockets of a server: bound before anything else is done, so that a busy port is told at once, and told in a sentence."""

import errno
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from frugal.service.address import without_secrets
from frugal.service.config import PREFIX

TRIED = 100  # ports beyond the busy one, to find one that is free
POLL = 0.02  # seconds


def bind(host: str, port: int) -> list[socket.socket]:
    """A socket per address of this host, all on one port; 0 takes a free one. They do not listen yet."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror:
        known = f"{without_secrets(host)} is not a name or address that this machine knows"
        raise ValueError(f"{known}: choose another with {PREFIX}HOST or --host") from None
    bound: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((each[0], each[4]) for each in found):
            chosen = bound[0].getsockname()[1] if bound else port
            _add(bound, family, (address[0], chosen, *address[2:]))
    except OSError as error:
        close(bound)
        raise ValueError(refusal(error, host, port)) from None
    return bound


def _add(bound: list[socket.socket], family: socket.AddressFamily, address: tuple[str | int, ...]) -> None:
    try:
        made = socket.socket(family, socket.SOCK_STREAM)
    except OSError:
        return  # a machine without IPv6
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
    except OSError as error:
        made.close()
        if bound and error.errno == errno.EADDRNOTAVAIL:
            return  # localhost has an address of IPv6 by name only
        raise
    made.set_inheritable(True)  # for worker processes
    bound.append(made)


def refusal(error: OSError, host: str, port: int) -> str:
    """What to do instead, in the words that were typed to come here."""
    how = "make run" if "MAKELEVEL" in os.environ else "frugal serve"  # make sets it for what it runs
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is in use. Choose another: {PREFIX}PORT={free_port(host, port)} {how}"
    if error.errno == errno.EACCES:
        return f"Port {port} needs more rights than this user has. Choose one above 1023: {PREFIX}PORT=8000 {how}"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{host} is not an address of this machine. Choose another: {PREFIX}HOST=127.0.0.1 {how}"
    return f"cannot listen on {host} port {port}: {error.strerror or error}"


def free_port(host: str, port: int) -> int:
    """The next port that nobody has; just the next one where all that are tried are busy."""
    for other in range(port + 1, min(port + TRIED, 65_536)):
        with suppress(OSError), socket.create_server((host, other), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
            return other
    return port + 1 if port < 65_535 else 8000


def close(sockets: list[socket.socket]) -> None:
    for each in sockets:
        each.close()


def when_listening(bound: socket.socket, tell: Callable[[], None]) -> None:
    """Call this from a thread once a connection is taken: by this process, or by its workers."""

    def wait() -> None:
        family, address = bound.family, bound.getsockname()
        while True:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                if probe.connect_ex(address) == 0:
                    break
            time.sleep(POLL)
        tell()

    threading.Thread(target=wait, name="frugal-listening", daemon=True).start()
