"""`frugal models`: list, publish, alias and retire a server's models."""

import argparse

from frugal.models.archive import check_file
from frugal.service.client import Json
from frugal.service.commands.remote.connecting import connected, listed, said, when


def listing(options: argparse.Namespace) -> str:
    with connected(options) as client:
        found = list(client.models())
    rows = [_version_row(version) for model in found for version in model["versions"]]
    empty = "no models yet: publish one with frugal models push NAME FILE"
    return listed(options, found, ("name", "version", "aliases", "bytes", "published", "retired"), rows, empty)


def push(options: argparse.Namespace) -> str:
    check_file(options.file)
    with connected(options) as client:
        made = client.publish(options.name, options.file, options.alias)
    named = f"; {made['name']}@{options.alias} is this version now" if options.alias else ""
    return said(options, made, f"published {made['name']}:{made['version']}, which new sessions for {made['name']} take from now on{named}")


def alias(options: argparse.Namespace) -> str:
    with connected(options) as client:
        model = client.set_alias(options.name, options.alias, options.version)
    return said(
        options, model, f"{options.name}@{options.alias} is {options.name}:{options.version} now; running sessions stay as they are"
    )


def retire(options: argparse.Namespace) -> str:
    with connected(options) as client:
        version = client.retire(options.name, options.version)
    named = f"{options.name}:{options.version}"
    return said(options, version, f"{named} is retired: a bare {options.name} no longer means it; its number and aliases still do")


def _version_row(version: Json) -> tuple[str, ...]:
    about = version["name"], str(version["version"]), " ".join(version["aliases"])
    return (*about, f"{version['size']:,}", when(version["created_at"]), when(version["retired_at"]))
