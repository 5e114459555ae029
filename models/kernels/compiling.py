"""The one decorator of every kernel, and the folder that keeps compiled code.

numba's file cache notices an edit of a kernel's own file, but not of a kernel that it calls from another file: it would go on running
the old one. So the folder is named by a hash of all kernels, and any edit starts an empty one. Several processes may fill it
at once.
"""

import hashlib
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numba

from frugal.models.kernels.linking import Linked
from frugal.models.kernels.sharing import is_locked, locked

HERE = Path(__file__).parent
config: Any = numba.config  # its names are made at run time
_made: list[Any] = []  # every kernel of this process
_loads_only: ContextVar[bool] = ContextVar("_loads_only", default=False)
_before_compiling: list[Callable[[], None]] = []  # called once


class Kernels(NamedTuple):
    """How many kernels this process has got in which way.

    Examples
    --------
    >>> print(Kernels(loaded=9, compiled=0))
    kernels: 9 from the cache, 0 compiled
    """

    loaded: int
    compiled: int

    def __str__(self) -> str:
        return f"kernels: {self.loaded} from the cache, {self.compiled} compiled"


def kernels() -> Kernels:
    """Counted as the files in the cache are: a kernel for other types of arguments is another one."""
    stats = [made.stats for made in _made if hasattr(made, "stats")]  # with NUMBA_DISABLE_JIT there is nothing to count
    return Kernels(sum(each.cache_hits.total() for each in stats), sum(each.cache_misses.total() for each in stats))


class NotCachedError(Exception):
    """A kernel would have to be compiled."""


@contextmanager
def only_loading() -> Iterator[None]:
    """Kernels come from the cache or raise NotCachedError; nothing is compiled. Of this thread alone."""
    if cache_folder() is None:
        raise NotCachedError
    token = _loads_only.set(True)
    try:
        yield
    finally:
        _loads_only.reset(token)


def before_compiling(tell: Callable[[], None]) -> None:
    """Call this once, as soon as the process compiles a kernel that the cache does not have. The last one to ask for it is called."""
    _before_compiling[:] = [tell]


def turn(name: str) -> AbstractContextManager[None]:
    """Held by one process at a time. Who comes second waits, and then finds in the cache what the first has compiled."""
    folder = cache_folder()
    return locked(folder / f"{name}.lock") if folder else nullcontext()


def taken(name: str) -> bool:
    """Whether somebody has this turn now."""
    folder = cache_folder()
    return folder is not None and is_locked(folder / f"{name}.lock")


def sources_hash(package: Path = HERE.parents[1]) -> str:
    """A short name for the present text of all kernels: of every folder `kernels` in the package."""
    digest = hashlib.sha256()
    parts = sorted(part for part in package.iterdir() if part.is_dir())  # one by one: in a checkout they are links, which ** leaves out
    for source in (source for part in parts for source in sorted(part.glob("**/kernels/**/*.py"))):
        digest.update(str(source.relative_to(package)).encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> Path | None:
    """The first place that can be written: where NUMBA_CACHE_DIR says, beside the sources, the user's cache, the temporary folder."""
    name = "frugal-" + sources_hash()
    for place in (_asked_for, _beside_the_sources, _users, _temporary):
        try:
            folder = place()
            if folder is not None and _usable(folder / name):
                return folder / name
        except (OSError, RuntimeError):  # no home, no temporary folder
            continue
    warnings.warn(
        "no folder for compiled kernels can be written, so every process compiles them again (about 30 s): "
        "set NUMBA_CACHE_DIR to a writable folder",
        stacklevel=2,
    )
    return None


def _asked_for() -> Path | None:
    return Path(config.CACHE_DIR) if config.CACHE_DIR else None


def _beside_the_sources() -> Path:
    return HERE / "__pycache__"


def _users() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()


def _temporary() -> Path | None:
    """A folder of our own: compiled code is run, so nobody else may put it there."""
    own = Path(tempfile.gettempdir()) / f"frugal-{os.getuid()}"
    own.mkdir(mode=0o700, exist_ok=True)
    return own if own.stat().st_uid == os.getuid() and not own.is_symlink() else None


def _usable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if folder.stat().st_uid not in (os.getuid(), 0):
            return False
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@contextmanager
def _caching_in(folder: Path) -> Iterator[None]:
    """numba reads CACHE_DIR when a function is decorated; put back at once, other packages' kernels keep their own folder."""
    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


def _decorator(inline: bool, allocates: bool, from_python: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    folder = cache_folder()
    compiled = numba.njit(  # type: ignore[call-overload]  # its types leave out _nrt
        cache=from_python and folder is not None,  # compiled once per machine, not once per process
        nogil=True,  # rows and trees are worked on in threads beside each other
        error_model="numpy",  # 0/0 is nan inside a loop, not an exception
        # A forest is handed over word by word where a call is not inlined, and every look into it counts references with atomic
        # instructions unless it is told not to: without that, `acquire` took 265 us a row instead of 39. Such a function can
        # allocate nothing.
        forceinline=inline,
        _nrt=allocates,
        # The ways in from Python and from C take longer to compile than most parts of kernels themselves.
        no_cpython_wrapper=not from_python,
        no_cfunc_wrapper=True,
        **({} if from_python else {"pipeline_class": Linked}),
    )

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        with _caching_in(folder) if folder else nullcontext():
            made = compiled(function)
        if from_python and folder and hasattr(made, "_cache"):  # with NUMBA_DISABLE_JIT it is the function itself
            _share(made._cache._cache_file, folder / "cache.lock")
        if not from_python and hasattr(made, "_compile_for_args"):
            _close(made)
        if from_python:
            _made.append(made)
        return made  # type: ignore[no-any-return]

    return decorate


def _close(part: Any) -> None:
    """Refuse calls from Python: a part has no way in from there, and numba would jump to nowhere."""

    def refuse(*_: Any) -> None:
        raise TypeError(f"{part.__name__} is a part of other kernels: from Python call as_python({part.__name__})")

    def remember(compiled: Any) -> None:  # for other kernels only
        part.overloads[tuple(compiled.signature.args)] = compiled

    part._compile_for_args, part.add_overload = refuse, remember


def _share(files: Any, lock: Path) -> None:
    """Let processes take turns at a kernel's files, and know what is not there.

    numba reads the index, chooses a file name, and writes both back: of two processes that save one kernel for different types at the same
    moment, one loses its entry, or its entry then names the other's code.
    """
    load, save = files.load, files.save

    def load_in_turn(key: Any) -> Any:
        with locked(lock):
            found = load(key)
        if found is None:
            if _loads_only.get():
                raise NotCachedError
            while _before_compiling:
                _before_compiling.pop()()
        return found

    def save_in_turn(key: Any, data: Any) -> None:
        with locked(lock):
            save(key, data)

    files.load, files.save = load_in_turn, save_in_turn


def as_python(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function for a single call on lists: compiled code would take longer to call than to run."""
    return getattr(function, "py_func", function)


kernel = _decorator(inline=False, allocates=True, from_python=True)
inlined = _decorator(inline=True, allocates=False, from_python=False)  # a part of a kernel
called = _decorator(inline=False, allocates=False, from_python=False)  # a part that is rare, or long: compiled only once
