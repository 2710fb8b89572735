"""Hooks: the team's own commands and services, asked before and after each step.

A hook gets what happens as JSON: a command on its standard input, a URL as the body of a POST. Exit code 0, or a 2xx
answer, lets the switch continue; anything else stops and undoes it, as in gh-ost's hooks.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus

from sparkmirror.errors import SparkMirrorError
from sparkmirror.migrate.file import Hook

_SHOWN = 300
"""Characters of a hook's answer that an error shows."""


class HookRefused(SparkMirrorError):
    """A hook said no, or did not answer in time."""

    exit_code = 1


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
    process = subprocess.Popen(
        ["/bin/sh", "-c", hook.run],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # so that a time-out ends the command's children, too
    )
    try:
        output, _ = process.communicate(body, timeout=hook.timeout)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise HookRefused(f"hook {hook.run}: no end within {hook.timeout:g} s") from None
    if process.returncode:
        said = _shown(output)
        raise HookRefused(f"hook {hook.run}: exit code {process.returncode}{said}")


def _post(hook: Hook, body: bytes) -> None:
    request = urllib.request.Request(hook.run, data=body, headers={"Content-Type": "application/json"})  # noqa: S310 - http(s), as `is_url` says
    try:
        with _OPENER.open(request, timeout=hook.timeout) as answer:
            status, text = answer.status, answer.read(_SHOWN)
    except urllib.error.HTTPError as error:
        status, text = error.code, error.read(_SHOWN)
    except OSError as error:
        raise HookRefused(f"hook {hook.run}: {error}") from None
    if not HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        raise HookRefused(f"hook {hook.run}: HTTP status {status}{_shown(text)}")


def _shown(output: bytes) -> str:
    text = " ".join(output[-_SHOWN:].decode(errors="replace").split())
    return f": {text}" if text else ""
