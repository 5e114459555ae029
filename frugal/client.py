"""The client: `from frugal.client import Client`. Needs httpx alone."""

from frugal.service.client import *  # noqa: F403 - its names are this module's
from frugal.service.client import __all__ as __all__
