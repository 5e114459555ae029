"""How much memory this process may use: the least of its own limits, those of its container and what the machine has."""

import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

GROUPS = Path("/proc/self/cgroup")
MOUNTED = Path("/sys/fs/cgroup")


def memory_limit() -> int:
    """Bytes; what cannot be read limits nothing."""
    own = [resource.getrlimit(which)[0] for which in (resource.RLIMIT_DATA, resource.RLIMIT_AS)]
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([limit for limit in own if limit != resource.RLIM_INFINITY] + list(group_limits()) + [machine])


def lacks_memory(error: BaseException) -> bool:
    """Whether this is what Python says when there is no more memory: for a thread that has no stack it uses other words.

    Examples
    --------
    >>> lacks_memory(MemoryError()), lacks_memory(RuntimeError("can't start new thread")), lacks_memory(RuntimeError("no"))
    (True, True, False)
    """
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "can't start new thread" in str(error))


def group_limits(groups: Path = GROUPS, mounted: Path = MOUNTED) -> Iterator[int]:
    """The limits of this process's control groups and of those around them, for a group has no more than the one that it stands in.

    A line of /proc/self/cgroup is `0::/path` where there is one tree of groups (version 2), and `4:memory:/path` where each kind of limit
    has its own (version 1). In a container the path may be the host's: then the files at the top are the container's.
    """
    try:
        lines = groups.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if not kinds:
            yield from _limits(mounted, path, "memory.max")
        elif "memory" in kinds.split(","):
            yield from _limits(mounted / "memory", path, "memory.limit_in_bytes")


def _limits(top: Path, path: str, name: str) -> Iterator[int]:
    inner = top / path.strip("/")
    for folder in (inner, *inner.parents):
        with suppress(OSError, ValueError):  # not there, not ours to read, or `max`
            yield int((folder / name).read_text())
        if folder == top:
            return
