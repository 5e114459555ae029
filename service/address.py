"""Where a PostgreSQL database is, read once and strictly, and the password, which is never shown.

The two drivers read a URL each in its own way: of `postgresql://u:a/b@host/d` the one makes the password `a/b`, the other a host called
`u`, and prints the rest when it is not found. So a URL is taken only where it can be read in one way, and drivers are handed its parts.
"""

import os
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote, unquote, unquote_plus

LETTER = r"(?:[^\s%/?#@:\[\]\x00-\x20\x7f]|%[0-9A-Fa-f]{2})"
URL = re.compile(
    rf"""(?:postgresql|postgres)://
    (?:(?P<user>{LETTER}*)(?::(?P<password>(?:{LETTER}|:)*))?@)?
    (?P<host>[A-Za-z0-9._,-]+|\[[0-9A-Fa-f:.]+\])?
    (?::(?P<port>[0-9]{{1,5}}))?
    (?:/(?P<name>{LETTER}*))?
    (?:\?(?P<options>[^\s#@\[\]\x00-\x20\x7f]*))?""",
    re.VERBOSE,
)
PARTS = ("user", "password", "host", "port", "dbname")  # may stand among the options too
OPTIONS = {"application_name", "gsslib", "krbsrvname", "options", "passfile", "sslcert", "sslcrl", "sslkey", "sslmode", "sslnegotiation"}
OPTIONS |= {"sslpassword", "sslrootcert", "ssl_max_protocol_version", "ssl_min_protocol_version", "target_session_attrs"}
SECRET = ("password", "sslpassword")
ENCODE = (
    "this can be read in more than one way. In user, password and name write / as %2F, # as %23, ? as %3F, @ as %40, % as %25, : as %3A, "
    "[ as %5B, ] as %5D and a space as %20; or leave the password out and put it into a file: FRUGAL_DATABASE_PASSWORD_FILE"
)
LONGEST = 4096  # bytes of a file with a password


@dataclass(frozen=True)
class Address:
    """A database's address in parts, decoded. `password` is what the URL says; `secret` what to connect with."""

    user: str | None
    password: str | None = field(repr=False)
    hosts: tuple[str, ...]
    port: int | None
    name: str | None
    options: Mapping[str, str] = field(repr=False)
    password_file: Path | None = None

    @classmethod
    def read(cls, url: str, password_file: Path | None = None) -> "Address":
        """The parts of a URL; ValueError, with nothing of the URL in it, where it could be read in another way too."""
        found = URL.fullmatch(url)
        if found is None or not _plain(url):
            raise ValueError(ENCODE)
        if found["name"] == "":
            raise ValueError("the name of the database is missing after the last /")
        parts = {part: _decoded(text) for part, text in found.groupdict().items() if text is not None and part in ("user", "password")}
        named = {"host": (found["host"] or "").strip("[]"), "port": found["port"], "dbname": _decoded(found["name"] or "")}
        given = parts | {part: text for part, text in named.items() if text}
        options = _options(found["options"] or "")
        if twice := sorted(given.keys() & options.keys()):
            raise ValueError(f"{twice[0]} is given twice, before and after the ?: leave one out")
        given |= {part: options.pop(part) for part in PARTS if part in options}
        hosts = given.get("host") or os.environ.get("PGHOST", "")
        return cls(
            given.get("user") or None,
            given.get("password"),
            _hosts(hosts, given.get("port")),
            int(given["port"]) if "port" in given else None,
            given.get("dbname"),
            MappingProxyType(options),
            password_file,
        )

    def secret(self) -> str | None:
        """The password. A file is read each time, so that a new password needs no new start; OSError where that cannot be done."""
        return self.password or None if self.password_file is None else read_password(self.password_file)

    @property
    def shown(self) -> str:
        """The address for people: no password, whatever it is made of."""
        secret = ":***" if self.password or self.password_file else ""
        who = quote(self.user or "", "") + secret + "@" if self.user or secret else ""
        socket = [f"host={','.join(self.hosts)}"] if self.hosts[0].startswith("/") else []
        host = "" if socket else ",".join(f"[{host}]" if ":" in host else host for host in self.hosts)
        port = f":{self.port}" if self.port else ""
        options = [*socket, *(f"{name}={'***' if name in SECRET else quote(value)}" for name, value in self.options.items())]
        return f"postgresql://{who}{host}{port}/{quote(self.name or '', '')}" + ("?" + "&".join(options) if options else "")


def read_password(file: Path) -> str:
    """What a file says in its one line; OSError otherwise."""
    with file.open("rb") as opened:
        data = opened.read(LONGEST + 1)
    try:
        text = data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        text = ""
    if not text or len(data) > LONGEST or any(letter in text for letter in "\n\r\0"):
        raise OSError(f"{file} should hold a password in one line of UTF-8, and nothing else")
    return text


def without_secrets(text: str) -> str:
    """Words that somebody typed: a database's address is cut off where it begins, and a key too; who logs in is left out of a URL.

    Examples
    --------
    >>> without_secrets("unrecognized arguments: --databse postgresql://u:secret@host/name")
    'unrecognized arguments: --databse postgresql:***'
    >>> without_secrets("no server at http://me:secret@host:8000")
    'no server at http://***@host:8000'
    """
    text = re.sub(r"(postgres(?:ql)?(?:\+\w+)?:|password=|frgl_).*", r"\1***", text, flags=re.DOTALL | re.IGNORECASE)
    return re.sub(r"(?<=://)[^/\s]*@|[^\s/'\"@]*:[^\s/'\"@]*@", "***@", text)


def _options(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in text.split("&") if text else []:
        name, equals, value = pair.partition("=")
        if name not in OPTIONS and name not in PARTS:
            raise ValueError(f"after the ? only these can be given: {', '.join(sorted(OPTIONS | set(PARTS)))}")
        if name in found:
            raise ValueError(f"{name} is given twice: leave one out")
        if not equals or not (value or name == "password"):
            raise ValueError(f"{name} is given without a value")
        found[name] = _decoded(value, plus=True)
    return found


def _hosts(text: str, port: str | None) -> tuple[str, ...]:
    hosts = tuple(text.split(","))
    if not all(hosts):
        raise ValueError("the host is missing: name it, as localhost, or the folder of its socket, as ?host=/run/postgresql")
    if len(hosts) > 1 and port is not None:
        raise ValueError("of several hosts with one port it is not clear whose it is: leave the port out, or name one host")
    if port is not None and not (port.isascii() and port.isdecimal() and 0 < int(port) < 65536):
        raise ValueError("the port is no number from 1 to 65535")
    return hosts


def _decoded(text: str, plus: bool = False) -> str:
    """Percent-codes as what they stand for, where that is UTF-8."""
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise ValueError(ENCODE)
    try:
        return (unquote_plus if plus else unquote)(text, errors="strict")
    except UnicodeDecodeError:
        raise ValueError("the percent-codes are no UTF-8") from None


def _plain(url: str) -> bool:
    """No byte that is no letter, and no letter that some reader takes for one of /?#@: because it looks like it."""
    others = [letter for letter in url if not letter.isascii()]
    lone = any("\ud800" <= letter <= "\udfff" for letter in others)
    return not lone and not any(set(unicodedata.normalize("NFKC", letter)) & set("/?#@:") for letter in others)
