"""Where the command `frugal` begins: an installation for the client alone has not all that the command line needs, and is told so."""

import sys

OURS = "frugal"


def main() -> int:
    try:
        from frugal.service.commands.main import main as run
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == OURS:
            raise
        print(
            f"frugal: {error.name} is not installed. The command line needs more than the client: in the checkout, pip install '.[serve]'",
            file=sys.stderr,
        )
        return 2
    return run()
