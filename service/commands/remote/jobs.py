"""`frugal jobs`: submit, list, show, watch and cancel trainings on a server, and the learners there are."""

import argparse
import json
import sys

from frugal.service.client import Client, Json
from frugal.service.commands.parameters import OPTIONS, parse_settings
from frugal.service.commands.remote.connecting import connected, listed, said, table, warn_of, when
from frugal.service.commands.remote.datasets import prices
from frugal.service.commands.remote.watching import Watch
from frugal.service.commands.reporting import report

NAMES = "NAME=VALUE; frugal jobs learners shows the names"
ELSEWHERE = {name: option for name, option in OPTIONS.items() if name != "n_jobs"}  # threads are the server's to choose


def submit(options: argparse.Namespace) -> str:
    params, costs = parse_settings(options.set or (), NAMES, ELSEWHERE), prices(options.costs)
    with connected(options) as client:
        job = client.submit(
            options.dataset,
            options.label,
            learner=options.learner,
            params=params,
            budget=options.budget,
            costs=costs,
            penalties=options.penalties,
            test_fraction=options.test_fraction,
            seed=options.seed,
            publish=options.publish,
            alias=options.alias,
        )
        warn_of(job["warnings"])
        if not options.watch:
            return said(options, job, f"job {job['id']} is queued: see it with frugal jobs watch {job['id']}")
        print(f"frugal: job {job['id']}", file=sys.stderr)
        return ended(options, watched(options, client, job["id"]), len(job["warnings"]))


def listing(options: argparse.Namespace) -> str:
    with connected(options) as client:
        found = list(client.jobs(options.status))
    rows = [(j["id"], j["status"], j["dataset"], j["learner"], _percent(j), _model(j), when(j["created_at"])) for j in found]
    empty = "no such jobs" if options.status else "no jobs yet: submit one with frugal jobs submit --dataset NAME --label COLUMN"
    return listed(options, found, ("id", "status", "data set", "learner", "progress", "model", "submitted"), rows, empty)


def show(options: argparse.Namespace) -> str:
    with connected(options) as client:
        job = client.job(options.id)
    about = [(name, text) for name, text in _about(job) if text]
    return said(options, job, "\n\n".join([table(about), *([_report(job)] if job["status"] == "done" else [])]))


def watch(options: argparse.Namespace) -> str:
    with connected(options) as client:
        return ended(options, watched(options, client, options.id))


def cancel(options: argparse.Namespace) -> str:
    with connected(options) as client:
        job = client.cancel_job(options.id)
    return said(options, job, f"job {job['id']} is cancelled: nothing is published")


def learners(options: argparse.Namespace) -> str:
    with connected(options) as client:
        found = client.learners()
    return json.dumps({"items": found}, indent=2) if options.json else "\n\n".join(_learner(learner) for learner in found)


def watched(options: argparse.Namespace, client: Client, id: str) -> Json:
    """The job once it is over. Who stops watching does not stop it, and is told how to go on."""
    try:
        with Watch(sys.stderr) as watch:
            return client.wait(id, watch)
    except KeyboardInterrupt:
        where = f"{id} --url {options.url}" if options.url else id
        print(f"frugal: the job goes on: frugal jobs watch {where} shows it, frugal jobs cancel {where} ends it", file=sys.stderr)
        raise


def ended(options: argparse.Namespace, job: Json, told: int = 0) -> str:
    """What came of a job, with its warnings but for the first few that were told; ValueError where it is no model."""
    if job["status"] == "done":
        warn_of(job["warnings"][told:])
        return said(options, job, f"{_report(job)}\n\npublished {_model(job)}")
    if options.json:
        print(json.dumps(job, indent=2))
    raise ValueError(job["failure"] or f"the job was {job['status']}: nothing is published")


def _report(job: Json) -> str:
    costs = {name: job["costs"].get(name, {"cost": 1.0})["cost"] or 0.0 for name in job["metrics"].get("feature_use", {})}
    return report(job["progress"]["trees"], job["metrics"], costs)


def _about(job: Json) -> list[tuple[str, str]]:
    params = " ".join(f"{name}={json.dumps(value)}" for name, value in job["params"].items())
    alias = job["publish"]["alias"]
    return [
        ("status", f"{job['status']} {_percent(job)}".rstrip()),
        ("failure", job["failure"] or ""),
        ("data set", job["dataset"]),
        ("label", job["label"]),
        ("learner", f"{job['learner']} {params}".rstrip()),
        ("penalties", "" if job["penalties"] is None else json.dumps(job["penalties"])),
        ("budget", "" if job["budget"] is None else f"{job['budget']:,.2f}"),
        ("publishes", job["publish"]["name"] + (f" and moves {job['publish']['name']}@{alias}" if alias else "")),
        ("published", _model(job)),
        ("attempts", str(job["attempts"])),
        ("submitted", f"{when(job['created_at'])} UTC by {job['owner']}"),
        ("started", when(job["started_at"])),
        ("finished", when(job["finished_at"])),
        *(("warning", text) for text in job["warnings"]),
    ]


def _percent(job: Json) -> str:
    running = job["status"] == "running" and job["progress"]
    return f"{100 * job['progress']['fraction']:.0f} %" if running else ""


def _model(job: Json) -> str:
    if job["model"] is None:
        return ""
    alias = job["publish"]["alias"]
    return f"{job['model']['name']}:{job['model']['version']}" + (f" as {job['model']['name']}@{alias}" if alias else "")


def _learner(learner: Json) -> str:
    parameters = learner["parameters"]["properties"]
    rows = [(f"  {name}", json.dumps(about.get("default")), about.get("description", "")) for name, about in parameters.items()]
    takes = "takes a budget" if learner["takes_budget"] else "takes no budget"
    return f"{learner['name']}: {learner['summary']}; {takes}\n{learner['paper']}\n{table(rows)}"
