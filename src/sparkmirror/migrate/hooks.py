"""Hooks: the team's own commands and services, asked before and after each step.

A hook gets what happens as JSON: a command on its standard input, a URL as the body of a POST. Exit code 0, or a 2xx
answer, lets the switch continue; anything else stops and undoes it, as in gh-ost's hooks.

A command line, a URL and an answer may hold secrets. A terminal shows no user info and no query; evidence, which is
kept for ever, has the program or the host alone, and no answer.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPException
from urllib.parse import unquote_to_bytes

from sparkmirror.errors import SparkMirrorError
from sparkmirror.migrate.file import Hook, MigrationFile, Set
from sparkmirror.migrate.observation import Side

_SHOWN = 300
"""Characters of a hook's answer that an error shows."""
_URL = re.compile(r"(?P<scheme>https?://)(?:(?P<user>[^/?#]*)@)?(?P<host>[^/?#]*)(?P<path>[^?#]*)")


def shown(hook: Hook) -> str:
    """Return a hook as terminals show it: a URL without user info and query."""
    url = _URL.match(hook.run)
    return f"{url['scheme']}{url['host']}{url['path']}" if url else hook.run


def kept(hook: Hook) -> str:
    """Return a hook as evidence has it: a command's program, or a URL's host."""
    if url := _URL.match(hook.run):
        return f"{url['scheme']}{url['host']}"
    try:
        words = shlex.split(hook.run)
    except ValueError:  # a quotation without an end
        words = []
    return next((word for word in words if "=" not in word), "a command")


class HookRefused(SparkMirrorError):
    """A hook said no, or did not answer in time.

    The message is for terminals; `for_evidence` has no answer and no arguments.
    """

    exit_code = 1

    def __init__(self, hook: Hook, why: str, answer: bytes = b"") -> None:
        said = " ".join(answer[-_SHOWN:].decode(errors="replace").split())
        self.for_evidence = f"hook {kept(hook)}: {why}"
        super().__init__(f"hook {shown(hook)}: {why}" + (f": {said}" if said else ""))


def payload(file: MigrationFile, moving: Set, *, who: str, to: Side, step: str, when: str) -> dict[str, object]:
    """Return what a hook gets; `to` is the side where the clients start."""
    return {
        "migration": file.name,
        "set": moving.name,
        "owner": moving.owner,
        "topics": list(moving.topics),
        "groups": list(moving.groups),
        "who": who,
        "to": str(to),
        "step": step,
        "when": when,
    }


class _RefusesRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect is no success: it would turn the POST into a GET elsewhere."""

    def redirect_request(self, *_: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_RefusesRedirects)


def ask(hook: Hook, told: Mapping[str, object]) -> None:
    """Run a hook to its end; raises `HookRefused`."""
    body = json.dumps(told, ensure_ascii=False).encode()
    if hook.is_url:
        _post(hook, body)
    else:
        _run(hook, body)


def _run(hook: Hook, body: bytes) -> None:
    try:
        # Files, not pipes: a child that the command leaves running would hold a pipe open.
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as output:
            given.write(body)
            given.seek(0)
            process = subprocess.Popen(
                ["/bin/sh", "-c", hook.run],
                stdin=given,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # so that a time-out ends the command's children, too
            )
            try:
                process.wait(hook.timeout)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise HookRefused(hook, f"no end within {hook.timeout:g} s") from None
            if process.returncode:
                output.seek(max(output.seek(0, os.SEEK_END) - _SHOWN, 0))
                raise HookRefused(hook, f"exit code {process.returncode}", output.read(_SHOWN))
    except OSError as error:  # no place for the files, or no process
        raise HookRefused(hook, f"can't be run: {error.strerror or error}") from None


def _post(hook: Hook, body: bytes) -> None:
    try:
        try:
            answer = _OPENER.open(_request(hook, body), timeout=hook.timeout)
        except urllib.error.HTTPError as error:
            answer = error  # an answer, too
        with answer:
            status, text = answer.status, answer.read(_SHOWN)
    except OSError as error:
        raise HookRefused(hook, str(error)) from None
    except (HTTPException, ValueError) as error:  # whose text may have the URL
        raise HookRefused(hook, type(error).__name__) from None
    if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        raise HookRefused(hook, f"HTTP status {status}", text)


def _request(hook: Hook, body: bytes) -> urllib.request.Request:
    """Return a POST; user info goes into a header, as urllib would take it for a host."""
    headers, url = {"Content-Type": "application/json"}, _URL.match(hook.run)
    if url and url["user"] is not None:
        headers["Authorization"] = f"Basic {base64.b64encode(unquote_to_bytes(url['user'])).decode()}"
    place = f"{url['scheme']}{hook.run[url.start('host') :]}" if url else hook.run
    return urllib.request.Request(place, data=body, headers=headers)  # noqa: S310 - http(s), as `is_url` says
