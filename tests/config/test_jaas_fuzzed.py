"""JAAS lines of any kind: an entry or one line that repeats nothing, soon, in little memory; and there and back."""

from __future__ import annotations

import os
import time
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sparkmirror.config.jaas import FLAGS, JaasEntry, jaas_has_secrets, parse_jaas

brief = settings(max_examples=int(os.environ.get("SPARKMIRROR_FUZZ", "120")))
MODULE = "a.B required "
names = st.from_regex(r"[A-Za-z_$][A-Za-z0-9_$.\-]{0,12}", fullmatch=True)
values = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
pieces = st.sampled_from(["a.B ", "required ", *"x=\"';\\\n1-.é\0\u00a0", "\\101", "/*", "*/", "//"])


@brief
@given(st.lists(pieces, max_size=30).map("".join) | st.text(max_size=60), st.booleans())
@example("..", True)
@example('x="\\', True)
def test_whatever_text(text: str, begun: bool) -> None:
    text = MODULE + text if begun else text
    try:
        said = parse_jaas(text).module
    except ValueError as error:
        said = str(error).split()[0]
    assert said in {"holds", "has", "does"} or said in text
    assert jaas_has_secrets(text) in (True, False)


def quoted(value: str) -> str:
    return '"' + "".join(f"\\{ord(one):03o}" if ord(one) < 0x100 else one for one in value) + '"'


@brief
@given(names, st.sampled_from(FLAGS), st.dictionaries(names, values))
def test_there_and_back(module: str, flag: str, options: dict[str, str]) -> None:
    line = f"{module} {flag} " + " ".join(f"{name}={quoted(value)}" for name, value in options.items()) + ";"
    assert parse_jaas(line) == JaasEntry(module, options)


@pytest.mark.parametrize(
    "text",
    [
        "." * 300_000,
        "-" * 300_000,
        "/*" * 300_000,
        "'" * 300_001,
        MODULE + 'x="' + "a" * 1_000_000 + '";',
        MODULE + 'x="' + "\\" * 600_001,
        MODULE + 'x="' + "a\\1" * 200_000,
        MODULE + "\n.1" * 200_000,
        MODULE + "a" * 1_000_000 + "=1;",
    ],
    ids=lambda text: repr(text[:20] + text[-5:]),
)
def test_text_of_megabytes_takes_no_hours(text: str) -> None:
    """Three hundred thousand dots took minutes, a value of a megabyte 229 MB."""
    tracemalloc.start()
    began = time.thread_time()
    said = ""
    try:
        parse_jaas(text)
    except ValueError as error:
        said = str(error)
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert len(said) < 200
    assert time.thread_time() - began < 60
    assert peak < 10 * len(text) + (1 << 20)
