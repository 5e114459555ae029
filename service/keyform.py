"""What a key is made of: `frgl_`, 160 random bits and a check sum."""

import base64
import hashlib
import re
import secrets
import zlib

BITS = 160
KEY = re.compile(r"frgl_[a-z2-7]{32}[0-9a-f]{8}")


def new_key() -> str:
    """A key that nobody has.

    Examples
    --------
    >>> well_formed(new_key())
    True
    >>> well_formed("frgl_changeme")
    False
    """
    body = "frgl_" + base64.b32encode(secrets.token_bytes(BITS // 8)).decode().lower()
    return body + _check_sum(body)


def well_formed(key: str) -> bool:
    """Whether a text can be a key: a typing error or a placeholder is told apart from a key without asking the database."""
    return KEY.fullmatch(key) is not None and _check_sum(key[:-8]) == key[-8:]


def digest(key: str) -> str:
    """What is stored of a key."""
    return hashlib.sha256(key.encode()).hexdigest()


def _check_sum(body: str) -> str:
    return f"{zlib.crc32(body.encode()):08x}"
