"""Archives whose check sum is right and whose contents are not."""

import json
from collections.abc import Callable
from typing import Any

from frugal.models.tensors import NO_DIGEST, sealed


def forged(archive: bytes, change: Callable[[dict[str, Any], dict[str, Any], bytearray], Any]) -> bytes:
    """The archive after `change` has had its header, its manifest and its arrays in hand."""
    size = int.from_bytes(archive[:8], "little")
    header, body = json.loads(archive[8 : 8 + size]), bytearray(archive[8 + size :])
    manifest = json.loads(header["__metadata__"]["manifest"])
    change(header, manifest, body)
    header["__metadata__"] = {"manifest": json.dumps(manifest), "sha256": NO_DIGEST} | header.get("__metadata__", {}).get("extra", {})
    return sealed(json.dumps(header, separators=(",", ":")).encode(), bytes(body))
