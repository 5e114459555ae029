"""What the processes that we start are given: none of our secrets, and the folder where they find our packages."""

import os
from pathlib import Path

PACKAGES = Path(__file__).parents[3]  # where `frugal` is, also in a checkout that is not installed
OURS = "FRUGAL_"  # settings, the administrator's key and the database's password among them


def child_environment() -> dict[str, str]:
    """Our environment without our settings: a child works on what strangers sent, and is told all it needs in other ways."""
    return {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
