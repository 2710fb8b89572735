"""A migration's file: what it means, one clear line for each mistake, and the JSON Schema that editors use."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pydantic
import pytest
import yaml
from tools.migration_schema import text

from sparkmirror.errors import ConfigError
from sparkmirror.migrate.file import Fence, MigrationFile, MigrationType, SwitchStep, json_schema, read_file

PAGE = Path(__file__).parents[2] / "docs" / "migration-1.json"
WHOLE = """\
name: move
mirror: mm2.properties
flow: A->B
type: producers-first
sets:
  - name: shop
    topics: [orders, payments]
    groups: [billing, payments-app]
    owner: shop-team@example.com
  - name: stock
    topics: [stock]
policies: {lag: 1_000 records, empty: 1 min, fence: 20 s, still: 500 ms, drain: 30, watch: 1.5 h, batch: 5 groups}
fence: hook
hooks:
  before: {fence: [./ask.sh], producers: [{run: https://deploy.example.com/flip, timeout: 5 s}]}
  after: {open: [./tell.sh, ./tell-again.sh]}
  fence: {stop: ./stop.sh, start: {run: ./start.sh, timeout: 2 min}}
"""
LEAST = "mirror: mm2.properties\nsets: [{name: shop, topics: [orders]}]\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], str]:
    """Write a migration's file, and return its path."""

    def written(content: str) -> str:
        path = tmp_path / "migration.yaml"
        path.write_text(content, "utf-8")
        return str(path)

    return written


def test_a_whole_file(write: Callable[[str], str]) -> None:
    path = write(WHOLE)
    file = read_file(path)
    assert (file.name, file.flow, file.type, file.fence) == ("move", "A->B", MigrationType.PRODUCERS_FIRST, Fence.HOOK)
    assert file.mirror == str(Path(path).parent.absolute() / "mm2.properties")
    assert [(each.name, each.topics, each.groups, each.owner) for each in file.sets] == [
        ("shop", ("orders", "payments"), ("billing", "payments-app"), "shop-team@example.com"),
        ("stock", ("stock",), (), ""),
    ]
    policies = file.policies
    assert (policies.lag, policies.batch) == (1000, 5)
    assert (policies.empty, policies.fence, policies.still, policies.drain) == (60.0, 20.0, 0.5, 30.0)
    assert policies.watch == 5400.0
    assert [hook.run for hook in file.hooks.before[SwitchStep.FENCE]] == ["./ask.sh"]
    (flip,) = file.hooks.before[SwitchStep.PRODUCERS]
    assert (flip.is_url, flip.timeout) == (True, 5.0)
    assert [hook.is_url for hook in file.hooks.after[SwitchStep.OPEN]] == [False, False]
    assert file.hooks.fence is not None
    assert (file.hooks.fence.stop.timeout, file.hooks.fence.start.timeout) == (60.0, 120.0)


def test_what_is_left_out(write: Callable[[str], str]) -> None:
    path = write(LEAST)
    file = read_file(path)
    assert (file.name, file.flow) == (Path(path).stem, "")
    assert (file.type, file.fence) == (MigrationType.CONSUMERS_FIRST, Fence.ACL)
    assert (file.policies.lag, file.policies.batch, file.policies.watch) == (1000, 5, 600.0)


# The file, and what is said of it after its path.
_MISTAKES = [
    ("", ": has 0 documents, and a migration is one"),
    (LEAST + "---\n" + LEAST, ": has 2 documents, and a migration is one"),
    ("- a\n", ", line 1: is not a mapping"),
    ("mirror: [\n", ", line 2: is no YAML: expected the node content, but found '<stream end>'"),
    ("mirror: a\nmirror: b\n", ", line 2: mirror: is there twice"),
    ("sets: [{name: shop, topics: [orders]}]\n", ", line 1: mirror: is missing"),
    ("mirror: ''\nsets: [{name: shop, topics: [orders]}]\n", ", line 1: mirror: is empty"),
    ("mirror: a\n", ", line 1: sets: is missing"),
    ("mirror: a\nsets: []\n", ", line 2: sets: is empty"),
    ("mirror: a\nsets: {shop: [orders]}\n", ", line 2: sets: is no list"),
    ("mirror: a\nsets: [shop]\n", ", line 2: sets[0]: is no mapping"),
    ("mirror: a\nsets:\n- name: shop\n", ", line 3: sets[0].topics: is missing"),
    ("mirror: a\nsets:\n- name: shop\n  topics: orders\n", ", line 4: sets[0].topics: is no list"),
    ("mirror: a\nsets:\n- name: shop\n  topics: []\n", ", line 4: sets[0].topics: is empty"),
    ("mirror: a\nsets:\n- name: shop\n  topics:\n  - a\n  - 7\n", ", line 6: sets[0].topics[1]: is no text"),
    (
        "mirror: a\nsets:\n- name: shop\n  topics: [orders.*]\n",
        ", line 4: sets[0].topics[0]: is no name: use letters, digits, - and _, in topics also dots",
    ),
    (
        "mirror: a\nsets:\n- name: the shop\n  topics: [orders]\n",
        ", line 3: sets[0].name: is no name: use letters, digits, - and _, in topics also dots",
    ),
    ("mirror: a\nsets:\n- name: shop\n  topics: [a]\n  groups: ['']\n", ", line 5: sets[0].groups[0]: is empty"),
    (
        "mirror: a\nsets: [{name: shop, topics: [a]}, {name: shop, topics: [b]}]\n",
        ", line 1: set shop stands there twice: each moves with one set",
    ),
    (
        "mirror: a\nsets: [{name: shop, topics: [a, b]}, {name: stock, topics: [b]}]\n",
        ", line 1: topic b stands there twice: each moves with one set",
    ),
    (
        "mirror: a\nsets: [{name: x, topics: [a], groups: [g]}, {name: y, topics: [b], groups: [g]}]\n",
        ", line 1: group g stands there twice: each moves with one set",
    ),
    (LEAST + "fense: acl\n", ", line 3: fense: there is no such key"),
    (LEAST + "fence: quota\n", ", line 3: fence: must be 'acl', 'hook' or 'none'"),
    (LEAST + "fence: hook\n", ", line 1: `fence: hook` needs `hooks.fence` with `stop` and `start`"),
    (LEAST + "type: blue-green\n", ", line 3: type: must be 'consumers-first', 'producers-first' or 'all-at-once'"),
    (
        LEAST + "policies: {fence: soon}\n",
        ", line 3: policies.fence: write a number and ms, s, min or h, such as 30 s",
    ),
    (
        LEAST + "policies: {fence: 3 days}\n",
        ", line 3: policies.fence: write a number and ms, s, min or h, such as 30 s",
    ),
    (
        LEAST + "policies: {fence: yes}\n",
        ", line 3: policies.fence: write a number and ms, s, min or h, such as 30 s",
    ),
    (LEAST + "policies: {fence: 0 s}\n", ", line 3: policies.fence: must be greater than 0"),
    (LEAST + "policies: {drain: -1}\n", ", line 3: policies.drain: must be greater than 0"),
    (
        LEAST + "policies: {lag: some}\n",
        ", line 3: policies.lag: write a number, such as 1000 records or 5 groups",
    ),
    (LEAST + "policies: {lag: -5}\n", ", line 3: policies.lag: must be greater than or equal to 0"),
    (LEAST + "policies: {batch: 0}\n", ", line 3: policies.batch: must be greater than or equal to 1"),
    (LEAST + "policies: {slack: 1 s}\n", ", line 3: policies.slack: there is no such key"),
    (
        LEAST + "hooks:\n  before: {lunch: [./x]}\n",
        ", line 4: hooks.before.lunch: must be 'consumers', 'producers', 'fence', 'publish', 'drain', 'arm', 'open',"
        " 'empty' or 'position'",
    ),
    (LEAST + "hooks:\n  before: {fence: ./x}\n", ", line 4: hooks.before.fence: is no list"),
    (LEAST + "hooks:\n  before: {fence: ['']}\n", ", line 4: hooks.before.fence[0].run: is empty"),
    (
        LEAST + "hooks:\n  before: {fence: [{run: x, timeout: never}]}\n",
        ", line 4: hooks.before.fence[0].timeout: write a number and ms, s, min or h, such as 30 s",
    ),
    (LEAST + "hooks:\n  fence: {stop: ./x}\n", ", line 4: hooks.fence.start: is missing"),
]


_NO_TEXTS = [
    (
        LEAST + 'hooks: {before: {open: ["./a\\0b"]}}\n',
        ", line 3: hooks.before.open[0].run: has a NUL byte, which no command or URL can have: take it out",
    ),
    (
        LEAST + 'hooks: {fence: {stop: {run: "./a\\0b"}, start: ./b}}\n',
        ", line 3: hooks.fence.stop.run: has a NUL byte, which no command or URL can have: take it out",
    ),
    (
        LEAST + 'hooks: {after: {open: ["./a\\ud800"]}}\n',
        ", line 3: hooks.after.open[0].run: has half of a character (a surrogate): write the whole character",
    ),
    (
        'mirror: a\nsets: [{name: shop, topics: [orders], owner: "a\\ud800"}]\n',
        ", line 2: sets[0].owner: has half of a character (a surrogate): write the whole character",
    ),
]
"""Texts that YAML can have, and no hook can get."""


@pytest.mark.parametrize(("content", "said"), [*_MISTAKES, *_NO_TEXTS])
def test_one_line_for_a_mistake(write: Callable[[str], str], content: str, said: str) -> None:
    path = write(content)
    with pytest.raises(ConfigError) as raised:
        read_file(path)
    assert str(raised.value) == path + said


def test_all_mistakes_at_once(write: Callable[[str], str]) -> None:
    path = write("mirror: a\nsets:\n- name: shop\n  topics: []\n  group: [x]\nfence: x\n")
    with pytest.raises(ConfigError) as raised:
        read_file(path)
    assert [each.key for each in raised.value.mistakes] == ["sets[0].topics", "sets[0].group", "fence"]
    assert len(str(raised.value).splitlines()) == 3


@pytest.mark.parametrize(
    ("name", "fits"), [("a move", False), ("müller", False), ("m" * 201, False), ("a.b_c-1", True)]
)
def test_a_files_name_becomes_a_topics(name: str, fits: bool, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.yaml"
    path.write_text("mirror: mm2.properties\nsets: [{name: shop, topics: [orders]}]\n")
    if fits:
        assert read_file(path).name == name
        return
    with pytest.raises(ConfigError, match="the file's name can't be part of a topic's name") as mistake:
        read_file(path)
    assert mistake.value.key == "name"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file"):
        read_file(tmp_path / "no.yaml")


def test_a_set_that_is_not_there(write: Callable[[str], str]) -> None:
    file = read_file(write(WHOLE))
    assert [each.name for each in file.chosen("stock")] == ["stock"]
    assert len(file.chosen(None)) == 2
    with pytest.raises(ConfigError, match="--set: shoes: there is no such set; there are shop, stock"):
        file.chosen("shoes")


# --- the schema -------------------------------------------------------------------------------------


def _tree(content: str) -> Any:
    return yaml.safe_load(content)


@pytest.mark.skipif(pydantic.VERSION.startswith("2.10."), reason="the oldest pydantic puts the same schema otherwise")
def test_the_published_schema_is_up_to_date() -> None:
    """`python -m tools.migration_schema > docs/migration-1.json` writes it."""
    assert PAGE.read_text("utf-8") == text()


def test_the_schema_is_one() -> None:
    jsonschema_rs.meta.validate(json_schema())


@pytest.mark.parametrize("content", [WHOLE, LEAST, LEAST + "policies: {drain: 0.5, lag: 7}\n"])
def test_the_schema_takes_what_the_model_takes(content: str) -> None:
    MigrationFile.model_validate(_tree(content))
    jsonschema_rs.validate(json_schema(), _tree(content))


_BEYOND_A_SCHEMA = "stands there twice", "documents", "is there twice", "no YAML", "policies.fence: must be greater"


@pytest.mark.parametrize(
    "content", [content for content, said in _MISTAKES if not any(map(said.count, _BEYOND_A_SCHEMA))]
)
def test_the_schema_refuses_what_the_model_refuses(content: str) -> None:
    assert not jsonschema_rs.is_valid(json_schema(), _tree(content))


def test_each_key_of_the_schema_is_described() -> None:
    schema = json_schema()
    parts = [("", schema), *schema["$defs"].items()]
    keys = [(name, key, each) for name, part in parts for key, each in _keys(part)]
    assert len(keys) > 25
    assert [f"{name}.{key}" for name, key, each in keys if "description" not in each] == []


def _keys(part: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    found = list(part.get("properties", {}).items())
    for one in part.get("anyOf", ()):
        found += _keys(one)
    return found


def test_the_schema_says_defaults() -> None:
    schema = json.loads(PAGE.read_text("utf-8"))
    assert schema["$defs"]["Policies"]["properties"]["lag"]["default"] == 1000
    assert schema["properties"]["fence"]["default"] == "acl"
