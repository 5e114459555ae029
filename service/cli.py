"""The command `frugal`: messages for people, exit code 2 and one line for what they got wrong."""

import argparse
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import version

from models.learners import LEARNERS
from service.errors import Problem
from service.interview import ask
from service.local import predict, show, train

DATABASE = "sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME (default: FRUGAL_DATABASE, or sqlite:///var/frugal.db)"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            result = options.run(options)
        for warning in said:
            print(f"frugal: {warning.message}", file=sys.stderr)
        if result:
            print(result)
        return 0
    except (ValueError, TypeError, IndexError, OSError, Problem) as error:
        print(f"frugal: {_one_line(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="frugal", description="Predict from as few paid facts as possible.")
    parser.add_argument("--version", action="version", version=f"frugal {version('frugal')}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _train_options(commands.add_parser("train", help="grow a model from a table of past cases and a price list"))
    predicting = commands.add_parser("predict", help="label, cost and features bought for every row of a table, as CSV")
    predicting.add_argument("--model", required=True, metavar="FILE")
    predicting.add_argument("--data", required=True, metavar="F.csv", help="a table with the model's columns; .gz too")
    predicting.add_argument("--budget", type=float, help="the most to spend on a row")
    predicting.set_defaults(run=predict)
    asking = commands.add_parser("ask", help="a session in the terminal, one question at a time")
    asking.add_argument("--model", required=True, metavar="FILE")
    asking.add_argument("--budget", type=float, help="the most to spend")
    asking.set_defaults(run=ask)
    showing = commands.add_parser("show", help="what is in a model file: its settings, prices and trees")
    showing.add_argument("model", metavar="FILE")
    showing.add_argument("--tree", type=int, metavar="N", help="print tree N, counted from 0")
    showing.set_defaults(run=show)
    serving = commands.add_parser("serve", help="run the HTTP service")
    serving.add_argument("--host", help="address to listen on (default 127.0.0.1)")
    serving.add_argument("--port", type=int, help="port to listen on (default 8000)")
    serving.add_argument("--workers", type=int, help="server processes; more than 1 needs PostgreSQL (default 1)")
    serving.add_argument("--database", metavar="URL", help=DATABASE)
    serving.set_defaults(run=_serve)
    migrating = commands.add_parser("migrate", help="bring the database to this release's tables")
    migrating.add_argument("--database", metavar="URL", help=DATABASE)
    migrating.add_argument("--example", action="store_true", help="train and publish the heart example too, if there is no such model")
    migrating.set_defaults(run=_migrate)
    return parser


def _serve(options: argparse.Namespace) -> str:
    from service.serve import serve  # FastAPI and SQLAlchemy take half a second that the other commands need not wait

    return serve(options)


def _migrate(options: argparse.Namespace) -> str:
    from service.config import from_environment
    from service.example import publish_example
    from service.store.migrating import prepared

    settings = from_environment(database=options.database, migrate="auto")
    with prepared(settings) as database:
        said = f"{settings.shown_database} is at this release's tables"
        return f"{said}\n{publish_example(database)}" if options.example else said


def _train_options(training: argparse.ArgumentParser) -> None:
    training.add_argument("--data", required=True, metavar="F.csv", help="a table with a header line; .gz too")
    training.add_argument("--label", required=True, metavar="COLUMN", help="the column to predict")
    training.add_argument("--costs", metavar="costs.csv", help="feature,cost[,group,cost_in_group,delayed,unit,question]; default: 1 each")
    training.add_argument("--learner", choices=sorted(LEARNERS), default="budget-forest")
    training.add_argument("--budget", type=float, help="the mean cost per case to stay within")
    training.add_argument("--set", action="append", metavar="NAME=VALUE", help="a parameter of the learner; a list with commas is a grid")
    training.add_argument("--out", required=True, metavar="model.safetensors")
    training.add_argument("--plot", metavar="curve.png", help="draw error against cost, as .png or .svg")
    training.add_argument("--test-fraction", type=_fraction, default=0.25, metavar="F", help="rows kept to measure on (default 0.25)")
    training.add_argument("--seed", type=int, default=0)
    training.add_argument("--jobs", type=int, default=-1, help="threads (default: all cores)")
    training.set_defaults(run=train)


def _fraction(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 to below 1")
    return value


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())


if __name__ == "__main__":
    sys.exit(main())
