"""Connections: HTTP/1.1 within limits of size and time, whatever stands before the server, and how many there may be."""

from frugal.service.connections.files import open_files
from frugal.service.connections.protocol import Guarded

__all__ = ["Guarded", "open_files"]
