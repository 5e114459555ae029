"""The command `frugal`: messages for people, exit code 2 and one line for what they got wrong."""

import argparse
import importlib
import io
import os
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any, NoReturn, TextIO, TypeVar

from frugal.models.kernels.compiling import before_compiling
from frugal.models.learners import LEARNERS
from frugal.models.memory import lacks_memory
from frugal.service.address import without_secrets
from frugal.service.commands.interview import ask
from frugal.service.commands.local import show, train
from frugal.service.commands.parameters import parse_penalties
from frugal.service.commands.predicting import predict
from frugal.service.errors import Problem
from frugal.service.training.spec import Penalties

DATABASE = "sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME (default: FRUGAL_DATABASE, or sqlite:///var/frugal.db)"

SERVER = "the server (default: FRUGAL_URL, or http://127.0.0.1:8000)"
PRICES = "a price list: feature,cost[,group,cost_in_group,delayed,unit,question]; what is not named costs 1"
DEFAULT = "frontier"  # the learner
MEAN_COST = "the mean cost per case to stay within; of the learner frontier: the one that its model aims at by default"
SETTING = (
    """a parameter of the learner, as max_leaves=16 or class_weight=balanced; commas make a list (a, is a list of one); or JSON, as """
    """class_weight='{"ill": 5}'"""
)
NO_MEMORY = "not enough memory: fewer rows or columns (--drop), --jobs 1, or a higher limit"
PENALTIES = (
    """what a mistake costs: a number, or JSON by true label and label said: '{"ill": {"well": 500}, "well": {"ill": 50}}'; """
    "a mistake that is not named costs nothing"
)

N = TypeVar("N", int, float)


def main(arguments: Sequence[str] | None = None) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a letter that it cannot show, as stderr has it already
    try:
        try:
            return _run(arguments)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # here, where what goes wrong can be told; not when Python ends
    except BrokenPipeError:
        _end_by_sigpipe()
        return 128 + signal.SIGPIPE
    except OSError as error:  # a full disk, say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"frugal: cannot write all of the output: {_one_line(error)}", file=sys.stderr)
        return 2


def _run(arguments: Sequence[str] | None) -> int:
    options = _parser().parse_args(arguments)
    before_compiling(lambda: print("frugal: compiling kernels, once on this machine: up to a minute", file=sys.stderr, flush=True))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = _warn
            result = options.run(options)
    except BrokenPipeError:
        raise
    except (ValueError, TypeError, IndexError, OSError, Problem) as error:
        print(f"frugal: {_one_line(error)}", file=sys.stderr)
        return 2
    except (MemoryError, RuntimeError) as error:
        if not lacks_memory(error):
            raise
        print(f"frugal: {NO_MEMORY}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    if result:
        print(result)
    return 0


def _warn(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: TextIO | None = None, line: str | None = None
) -> None:
    """At once: a training that begins with the wrong prices can be stopped."""
    print(f"frugal: warning: {message}", file=sys.stderr)


def _end_by_sigpipe() -> None:
    """End as `cat` does when `head` has seen enough: silent, by the signal that Python ignores."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGPIPE)


class Parser(argparse.ArgumentParser):
    """Says what is wrong with a command in one line, without repeating a password or a key that stands in it."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"frugal: {' '.join(without_secrets(message).split())}; see {self.prog} --help\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """What is not known is told here, where the command's name is, and not by `frugal` itself."""
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="frugal", description="Predict from as few paid facts as possible.")
    parser.add_argument("--version", action="version", version=f"frugal {version('frugal')}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _train_options(commands.add_parser("train", help="grow a model from a table of past cases and a price list"))
    _predict_options(commands.add_parser("predict", help="label, probabilities, cost and features bought for every row of a table, as CSV"))
    asking = commands.add_parser("ask", help="a session in the terminal, one question at a time")
    asking.add_argument(
        "--model", required=True, metavar="FILE|NAME", help="a model file; or a server's (--url or FRUGAL_URL), as heart or heart@live"
    )
    _stop_options(asking, "the most to spend", "the mean cost over many sessions: stop where the model's operating point for it says")
    _server_options(asking, "hold the session on this server (default: FRUGAL_URL, if there is no such model file)")
    asking.set_defaults(run=_ask)
    showing = commands.add_parser("show", help="what is in a model file: its settings, prices and trees")
    showing.add_argument("model", metavar="FILE")
    showing.add_argument("--tree", type=int, metavar="N", help="print tree N, counted from 0")
    showing.set_defaults(run=show)
    serving = commands.add_parser("serve", help="run the HTTP service")
    serving.add_argument("--host", help="address to listen on (default 127.0.0.1)")
    serving.add_argument("--port", type=int, help="port to listen on (default 8000)")
    serving.add_argument("--workers", type=int, help="server processes; more than 1 needs PostgreSQL (default 1)")
    serving.add_argument("--database", metavar="URL", help=DATABASE)
    serving.add_argument("--example", action="store_true", help="publish the heart example first, if there is no such model")
    serving.set_defaults(run=_serve)
    working = commands.add_parser("worker", help="train the jobs that are queued in a PostgreSQL database")
    working.add_argument("--database", metavar="URL", help=DATABASE)
    working.set_defaults(run=_worker)
    migrating = commands.add_parser("migrate", help="bring the database to this release's tables")
    migrating.add_argument("--database", metavar="URL", help=DATABASE)
    migrating.add_argument("--example", action="store_true", help="publish the heart example too, if there is no such model")
    migrating.set_defaults(run=_migrate)
    _keys_options(commands.add_parser("keys", help="make, list and revoke keys, on a server or on its database"))
    _models_options(commands.add_parser("models", help="list, publish, alias and retire a server's models"))
    _datasets_options(commands.add_parser("datasets", help="store, list, show, price and delete tables on a server"))
    _jobs_options(commands.add_parser("jobs", help="submit, watch, list and cancel trainings on a server"))
    return parser


def _predict_options(predicting: argparse.ArgumentParser) -> None:
    predicting.add_argument("--model", required=True, metavar="FILE")
    predicting.add_argument(
        "--data", required=True, metavar="TABLE", help="rows with the columns that the model asks for: .csv, .csv.gz or .parquet"
    )
    _stop_options(predicting, "the most to spend on a row", "the mean cost of the rows: stop where the model's operating point for it says")
    predicting.add_argument("--id", metavar="COLUMN", help="a column to copy to the output, instead of the row's number from 0")
    _missing_option(predicting)
    predicting.add_argument("--out", metavar="predictions.csv", help="where to write (default: print)")
    predicting.set_defaults(run=predict)


def _stop_options(command: argparse.ArgumentParser, budget: str, aim: str) -> None:
    command.add_argument("--budget", type=float, help=budget)
    either = command.add_mutually_exclusive_group()
    either.add_argument("--aim", type=_amount, metavar="COST", help=aim)
    either.add_argument("--confidence", type=_confidence, metavar="P", help="stop once the label is this probable, as 0.95; 1: to the end")


def _reading_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--drop", action="append", metavar="COLUMNS", help="columns to leave out, as id,name")
    command.add_argument("--numeric", action="append", metavar="COLUMNS", help="columns to read as numbers: words in them are missing")
    _missing_option(command)


def _missing_option(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--missing",
        action="append",
        metavar="CELLS",
        help="cells that mean missing, as 'NA,?' (--missing=-1 for a negative number)",
    )


def _keys_options(keys: argparse.ArgumentParser) -> None:
    commands = keys.add_subparsers(title="commands", required=True, metavar="COMMAND")
    creating = commands.add_parser("create", help="make a key; it is shown once")
    creating.add_argument("--owner", required=True, metavar="NAME", help="whose sessions the key sees")
    creating.add_argument("--role", choices=("client", "admin"), default="client", help="an admin's key makes keys and publishes too")
    creating.add_argument("--expires", metavar="90d|12h|TIME", help="when it ends (default: never)")
    listing = commands.add_parser("list", help="all keys, without what they are")
    revoking = commands.add_parser("revoke", help="let a key count no more")
    revoking.add_argument("id", metavar="ID")
    for name, command in (("create", creating), ("list", listing), ("revoke", revoking)):
        _server_options(command, "the server (default: FRUGAL_URL; without either, the database itself)")
        command.add_argument("--database", metavar="URL", help=DATABASE)
        command.set_defaults(run=_remote("keys", name))
    new = commands.add_parser("new", help="print a fresh key for FRUGAL_ADMIN_KEY; nothing is stored")
    new.add_argument("--json", action="store_true", help="JSON for programs")
    new.set_defaults(run=_remote("keys", "new"))


def _models_options(models: argparse.ArgumentParser) -> None:
    commands = models.add_subparsers(title="commands", required=True, metavar="COMMAND")
    listing = commands.add_parser("list", help="names with their versions and aliases")
    pushing = commands.add_parser("push", help="publish a model file as the next version of a name")
    pushing.add_argument("name", metavar="NAME")
    pushing.add_argument("file", metavar="FILE")
    pushing.add_argument("--alias", metavar="ALIAS", help="let this alias stand for it")
    naming = commands.add_parser("alias", help="let an alias stand for a version")
    naming.add_argument("name", metavar="NAME")
    naming.add_argument("alias", metavar="ALIAS")
    naming.add_argument("version", type=int, metavar="VERSION")
    retiring = commands.add_parser("retire", help="take a version out of what the bare name means")
    retiring.add_argument("name", metavar="NAME")
    retiring.add_argument("version", type=int, metavar="VERSION")
    for name, command in (("list", listing), ("push", pushing), ("alias", naming), ("retire", retiring)):
        _server_options(command, SERVER)
        command.set_defaults(run=_remote("versions", name))


def _datasets_options(datasets: argparse.ArgumentParser) -> None:
    commands = datasets.add_subparsers(title="commands", required=True, metavar="COMMAND")
    pushing = commands.add_parser("push", help="store a table: CSV with a header line, gzipped CSV or Parquet")
    pushing.add_argument("name", metavar="NAME")
    pushing.add_argument("file", metavar="FILE")
    pushing.add_argument("--costs", metavar="costs.csv", help=PRICES)
    _reading_options(pushing)
    listing = commands.add_parser("list", help="names with their sizes")
    showing = commands.add_parser("show", help="columns with their values and prices")
    pricing = commands.add_parser("price", help="other prices, for the jobs that come")
    deleting = commands.add_parser("delete", help="delete a table; models that were trained on it stay")
    for command in (showing, pricing, deleting):
        command.add_argument("name", metavar="NAME")
    pricing.add_argument("file", metavar="costs.csv", help=PRICES)
    named = (("push", pushing), ("list", listing), ("show", showing), ("price", pricing), ("delete", deleting))
    for name, command in named:
        _server_options(command, SERVER)
        command.set_defaults(run=_remote("datasets", name))


def _jobs_options(jobs: argparse.ArgumentParser) -> None:
    commands = jobs.add_subparsers(title="commands", required=True, metavar="COMMAND")
    submitting = commands.add_parser("submit", help="queue a training on a data set")
    submitting.add_argument("--dataset", required=True, metavar="NAME")
    submitting.add_argument("--label", required=True, metavar="COLUMN", help="the column to predict")
    submitting.add_argument("--learner", default=DEFAULT, metavar="NAME", help=f"default: {DEFAULT}")
    submitting.add_argument("--budget", type=_amount, help=MEAN_COST)
    submitting.add_argument("--set", action="append", metavar="NAME=VALUE", help=SETTING)
    submitting.add_argument("--costs", metavar="costs.csv", help="prices that win over the data set's")
    submitting.add_argument("--penalties", type=_penalties, metavar="PENALTIES", help=PENALTIES)
    submitting.add_argument("--test-fraction", type=_fraction, metavar="F", help="rows kept to measure on (default 0.25)")
    submitting.add_argument("--seed", type=_seed, help="default: 0")
    submitting.add_argument("--publish", metavar="NAME", help="the model's name (default: the data set's)")
    submitting.add_argument("--alias", metavar="ALIAS", help="let this alias stand for the new version")
    submitting.add_argument("--watch", action="store_true", help="show how it goes, to its end")
    listing = commands.add_parser("list", help="all jobs, newest first")
    listing.add_argument("--status", choices=("queued", "running", "done", "failed", "cancelled"))
    showing = commands.add_parser("show", help="what a job was asked for and what came of it")
    watching = commands.add_parser("watch", help="show how a job goes, to its end; Ctrl-C stops watching, not the job")
    cancelling = commands.add_parser("cancel", help="end a job that waits or runs; nothing is published")
    for command in (showing, watching, cancelling):
        command.add_argument("id", metavar="ID")
    learners = commands.add_parser("learners", help="what can be trained: parameters with their defaults")
    named = (("submit", submitting), ("list", listing), ("show", showing), ("watch", watching), ("cancel", cancelling))
    for name, command in (*named, ("learners", learners)):
        _server_options(command, SERVER)
        command.set_defaults(run=_remote("jobs", name))


def _server_options(command: argparse.ArgumentParser, url: str) -> None:
    command.add_argument("--url", metavar="URL", help=url)
    command.add_argument("--key", metavar="KEY", help="the key to call it with (default: FRUGAL_KEY)")
    command.add_argument("--json", action="store_true", help="JSON for programs")


def _remote(module: str, name: str) -> Callable[[argparse.Namespace], str]:
    """A command that talks to a server, imported when it is called: httpx is not for those who train."""

    def run(options: argparse.Namespace) -> str:
        found = importlib.import_module(f"frugal.service.commands.remote.{module}")
        command: Callable[[argparse.Namespace], str] = getattr(found, "listing" if name == "list" else name)
        return command(options)

    return run


def _ask(options: argparse.Namespace) -> str:
    """With a server that --url names, or FRUGAL_URL where there is no such file."""
    on_server = options.url or (os.environ.get("FRUGAL_URL") and not os.path.exists(options.model))
    return _remote("asking", "ask")(options) if on_server else ask(options)


def _serve(options: argparse.Namespace) -> str:
    from frugal.service.serve import serve  # FastAPI and SQLAlchemy take half a second that the other commands need not wait

    return serve(options)


def _worker(options: argparse.Namespace) -> str:
    from frugal.service.worker import worker

    return worker(options)


def _migrate(options: argparse.Namespace) -> str:
    from frugal.service.config import from_environment, tell_unknown
    from frugal.service.example import publish_example
    from frugal.service.store.migrating import prepared

    settings = from_environment(database=options.database, migrate="auto")
    tell_unknown()
    with prepared(settings) as database:
        said = f"{settings.shown_database} is at this release's tables"
        return f"{said}\n{publish_example(database)}" if options.example else said


def _train_options(training: argparse.ArgumentParser) -> None:
    training.add_argument("--data", required=True, metavar="TABLE", help="past cases: .csv with a header line, .csv.gz or .parquet")
    training.add_argument("--label", required=True, metavar="COLUMN", help="the column to predict")
    _reading_options(training)
    training.add_argument("--costs", metavar="costs.csv", help=PRICES)
    training.add_argument("--learner", choices=sorted(LEARNERS), default=DEFAULT, help=f"default: {DEFAULT}")
    training.add_argument("--budget", type=float, help=MEAN_COST)
    training.add_argument("--set", action="append", metavar="NAME=VALUE", help=SETTING)
    training.add_argument("--penalties", type=_penalties, metavar="PENALTIES", help=PENALTIES)
    training.add_argument("--out", required=True, metavar="model.safetensors")
    training.add_argument("--plot", metavar="curve.png", help="draw error against cost, as .png or .svg")
    training.add_argument("--test-fraction", type=_fraction, default=0.25, metavar="F", help="rows kept to measure on (default 0.25)")
    training.add_argument("--seed", type=_seed, default=0)
    training.add_argument("--jobs", type=_threads, default=-1, help="threads (default: all cores)")
    training.set_defaults(run=train)


def _penalties(text: str) -> Penalties:
    try:
        return parse_penalties(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _amount(text: str) -> float:
    return _number(float, text, lambda value: 0 <= value < float("inf"), "a number from 0")


def _confidence(text: str) -> float:
    return _number(float, text, lambda value: 0 < value <= 1, "a probability: above 0, at most 1")


def _fraction(text: str) -> float:
    return _number(float, text, lambda value: 0 <= value < 1, "a number from 0 to below 1")


def _seed(text: str) -> int:
    return _number(int, text, lambda value: value >= 0, "a whole number from 0")


def _threads(text: str) -> int:
    return _number(int, text, lambda value: value != 0, "a number of threads: 1 or more, or -1 for all cores")


def _number(kind: Callable[[str], N], text: str, allowed: Callable[[N], bool], what: str) -> N:
    try:
        value = kind(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not {what}") from None
    if not allowed(value):
        raise argparse.ArgumentTypeError(f"{text} is not {what}")
    return value


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return " ".join(str(error).split())


if __name__ == "__main__":
    sys.exit(main())
