"""`sparkmirror acls`: ACLs of the source, and the ACLs missing at the target."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sparkmirror.cli.loading import Clusters, File, Flow, Secrets, chosen_flows, load
from sparkmirror.cli.logs import warn
from sparkmirror.cli.output import Format, Output, print_json
from sparkmirror.errors import ConfigError
from sparkmirror.kafka.cluster.acls import Acl
from sparkmirror.kafka.cluster.tool_commands import SIGN_IN_FILE, acl_lines, tool_options
from sparkmirror.mirror.sync.acl_commands import kafka_users
from sparkmirror.mirror.sync.missing_acls import ScramUser, TargetAccess, access

COMMANDS, STRIMZI = "kafka-acls", "strimzi"
FORMS = (COMMANDS, STRIMZI)
WIDE = 500
"""Width in columns without a terminal."""


def acls(
    file: File,
    missing: Annotated[
        bool, typer.Option("--missing", help="Print only the additions for the ACLs that the target lacks.")
    ] = False,
    to: Annotated[
        str, typer.Option("--to", metavar="|".join(FORMS), help="With --missing: print commands, or KafkaUsers.")
    ] = COMMANDS,
    flow: Flow = None,
    clusters: Clusters = None,
    secrets: Secrets = None,
    output: Output = Format.TEXT,
) -> None:
    """List ACLs of the source, and tell which of them the target has.

    The ACLs are listed by the copies' names. Changes nothing. A mirror leaves out ACLs that allow
    to write: the writers at the target need these.

    Exit codes: 0 the list is printed, 2 the file or the command line is wrong, 3 a cluster can't be
    reached, or keeps no ACLs.

    Example: sparkmirror acls mm2.properties --missing > add-acls.sh
    """
    if to not in FORMS:
        raise ConfigError(f"must be {' or '.join(FORMS)}", origin="--to", key=to)
    asked = [access(each) for each in chosen_flows(load(file, clusters, secrets=secrets), flow)]
    for answer in asked:
        if answer.untold:
            warn(f"flow {answer.flow.name}: SCRAM users are not compared: {answer.untold}")
    if output is Format.JSON:
        print_json([_as_json(answer, missing) for answer in asked])
    elif missing:
        for answer in asked:
            _print_missing(answer, to)
    else:
        # Without a terminal a line must stay a line.
        console = Console(width=None if sys.stdout.isatty() else WIDE)
        console.print(_table(asked))
        for answer in asked:
            for line in _users(answer):
                console.print(line, highlight=False, markup=False)


def _print_missing(answer: TargetAccess, to: str) -> None:
    name = answer.flow.name
    missing = answer.missing
    if not missing and not answer.users:
        warn(f"flow {name}: no ACL is missing")
    if to == COMMANDS:
        lines = acl_lines(missing, answer.flow.target)
        if any(SIGN_IN_FILE in line for line in lines):
            typer.echo(f"# {name}: {SIGN_IN_FILE} says how an administrator signs in to {answer.flow.target.alias}")
        for line in (*lines, *(f"# {words}" for words in _users(answer))):
            typer.echo(line)
        return
    text, left_out = kafka_users(missing, answer.there)
    typer.echo(text, nl=False)
    for words in _users(answer):
        typer.echo(f"# {words}")
    if text:
        warn(
            f"flow {name}: write your Kafka cluster's name for CLUSTER. The User Operator removes a user's ACLs that"
            " are not listed, also those that a mirror adds later: with it write sync.topic.acls.enabled = false"
        )
    for principal in left_out:
        warn(f"flow {name}: {principal} can't be a KafkaUser: --to {COMMANDS} has its ACLs")


def _users(answer: TargetAccess) -> list[str]:
    target = answer.flow.target
    options = tool_options(target)
    return [
        f"SCRAM user {user.name} ({user.mechanism}) is not on cluster {target.alias}, and no API tells its password:"
        f" kafka-configs.sh {options} --alter --entity-type users"
        f" --entity-name {shlex.quote(user.name)} --add-config '{user.mechanism}=[password=...]'"
        for user in answer.users
    ]


def _as_json(answer: TargetAccess, missing: bool) -> dict[str, object]:
    lacking = set(answer.missing)
    return {
        "flow": answer.flow.name,
        "acls": [_words(acl) | {"missing": acl in lacking} for acl in sorted(lacking if missing else answer.wanted)],
        "scram_users": [_user(user) for user in answer.users],
    }


def _words(acl: Acl) -> dict[str, object]:
    return {
        "resource": acl.resource.name,
        "name": acl.name,
        "pattern": acl.pattern_name,
        "principal": acl.principal,
        "host": acl.host,
        "operation": acl.operation_name,
        "permission": acl.permission_name,
    }


def _user(user: ScramUser) -> dict[str, str]:
    return {"name": user.name, "mechanism": user.mechanism}


def _table(asked: Iterable[TargetAccess]) -> Table:
    table = Table(box=None, pad_edge=False)
    columns = ("flow", "resource", "name", "pattern", "principal", "host", "operation", "permission", "target")
    for column in columns:
        table.add_column(column, no_wrap=True)
    for answer in asked:
        lacking = set(answer.missing)
        for acl in sorted(answer.wanted):
            words = [escape(str(word)) for word in _words(acl).values()]
            table.add_row(escape(answer.flow.name), *words, "missing" if acl in lacking else "has it")
    return table
