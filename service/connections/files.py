"""Room for connections: each is an open file, of which a process may have only so many."""

import resource
import sys

from frugal.service.connections.watch import SPARE

OTHERS = 200  # files that are not connections of clients: databases, logs, libraries, children


def open_files(connections: int) -> None:
    """Raise this process's limit of open files so that so many connections fit; say so where the system does not allow it."""
    wanted = connections + SPARE + OTHERS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < wanted:
        print(
            f"frugal: the system allows {allowed:,} open files, and {connections:,} connections need {wanted:,}: "
            "raise that limit (ulimit -n), or set FRUGAL_MAX_CONNECTIONS lower",
            file=sys.stderr,
        )
