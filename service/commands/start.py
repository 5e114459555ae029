"""Where the command `frugal` begins: an installation for the client alone has not all that the command line needs, and is told so."""

import sys

OURS = "frugal"


def main() -> int:
    try:
        from frugal.service.commands.main import main as run

        return run()  # here too: commands import what only they need when they are called
    except ModuleNotFoundError as error:
        package = (error.name or OURS).partition(".")[0]
        if package == OURS:
            raise
        print(
            f"frugal: {package} is not installed. The command line needs more than the client: in the checkout, pip install '.[serve]'",
            file=sys.stderr,
        )
        return 2
