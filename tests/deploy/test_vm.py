"""The systemd unit and the Ansible role: exit codes, hardening, and a real run of the role into a prefix."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.deploy import programs
from tests.deploy.terraform import DEPLOY

UNIT = DEPLOY / "systemd" / "sparkmirror.service"
DROP_IN = DEPLOY / "systemd" / "sparkmirror.service.d" / "secrets.conf"
ROLE = DEPLOY / "ansible" / "roles" / "sparkmirror"
PAGE = DEPLOY.parent / "docs" / "deploy" / "vm.md"
ANSIBLE = "ansible-core==2.19.14"
WORST_EXPOSURE = 1.5
"""Of 10, as `systemd-analyze security` reckons."""


def settings(file: Path) -> dict[str, list[str]]:
    """Each key of a unit with its values."""
    told: dict[str, list[str]] = {}
    for line in file.read_text().splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            told.setdefault(key, []).append(value)
    return told


def variables() -> dict[str, Any]:
    """The role's variables with their defaults."""
    told = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    assert isinstance(told, dict)
    return told


def test_what_no_restart_mends_is_not_started_again() -> None:
    unit = settings(UNIT)
    assert unit["Restart"] == ["on-failure"]  # not after 0
    assert unit["RestartPreventExitStatus"] == ["2"]  # a wrong file; 3 is a cluster that is away
    assert unit["RestartForceExitStatus"] == ["SIGHUP SIGPIPE"]  # on-failure leaves them out
    assert unit["StartLimitIntervalSec"] == ["0"]
    assert unit["KillMode"] == ["mixed"]


def test_the_units_paths_are_those_that_the_role_replaces() -> None:
    told, unit = variables(), settings(UNIT)
    (command,) = unit["ExecStart"]
    assert command.startswith(f"{told['sparkmirror_prefix']}/current/bin/sparkmirror run ")
    assert f" {told['sparkmirror_config_directory']}/mm2.properties " in command
    assert f":{command.split()[-1]}/" in told["sparkmirror_ready_url"]
    assert (unit["User"], unit["Group"]) == ([told["sparkmirror_user"]], [told["sparkmirror_group"]])


def test_the_roles_variables_are_declared_used_and_told() -> None:
    names = set(variables())
    texts = "".join(file.read_text() for kind in ("tasks", "handlers") for file in (ROLE / kind).glob("*.yml"))
    registered = set(re.findall(r"register: (\w+)", texts)) | {"sparkmirror_venv", "sparkmirror_file"}
    used = set(re.findall(r"\bsparkmirror_\w+", texts)) - registered
    assert used == names
    assert {name for name in names if f"`{name}`" not in PAGE.read_text()} == set()
    inventory = yaml.safe_load((DEPLOY / "ansible" / "inventory.yml").read_text())
    assert set(inventory["mirrors"]["vars"]) <= names


def test_one_host_after_the_other() -> None:
    (play,) = yaml.safe_load((DEPLOY / "ansible" / "site.yml").read_text())
    assert (play["serial"], play["max_fail_percentage"]) == (1, 0)
    tasks = yaml.safe_load((ROLE / "tasks" / "main.yml").read_text())
    *_, flushed, waits = [next(key for key in task if "." in key) for task in tasks]
    assert (flushed, waits) == ("ansible.builtin.meta", "ansible.builtin.uri")  # restarted, then healthy


def test_no_secret_is_printed_or_readable() -> None:
    tasks = yaml.safe_load((ROLE / "tasks" / "main.yml").read_text())
    (secrets,) = (task for task in tasks if task["name"] == "Write the secrets")
    assert secrets["no_log"] is True
    assert secrets["ansible.builtin.copy"]["mode"] == "0600"


def test_a_wheelhouse_has_the_versions_that_the_role_asks_for() -> None:
    page = (PAGE.parent / "air-gapped.md").read_text()
    (command,) = (line for line in page.splitlines() if "pip wheel" in line)
    assert f"--constraint {Path(variables()['sparkmirror_constraints']).name}" in command


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_finds_no_fault(tmp_path: Path) -> None:
    program = tmp_path / "sparkmirror"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    there = tmp_path / UNIT.name
    there.write_text(UNIT.read_text().replace("/opt/sparkmirror/current/bin/sparkmirror", str(program)))
    shutil.copytree(DROP_IN.parent, tmp_path / DROP_IN.parent.name)
    verified = analyze("verify", "--man=no", str(there))
    assert (verified.returncode, verified.stderr) == (0, "")
    looked = analyze("security", "--offline=true", str(there))
    (exposure,) = re.findall(r"Overall exposure level for sparkmirror.service: ([\d.]+)", looked.stdout)
    assert float(exposure) <= WORST_EXPOSURE
    assert f"gives {exposure}" in PAGE.read_text()


def analyze(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "LC_ALL": "C"},
    )


# --- the role, run ------------------------------------------------------------------------------------


def playbook(directory: Path, *words: str) -> str:
    """Run the playbook on this machine, into the directory; what it prints."""
    program = programs.python_programs(ANSIBLE) / "ansible-playbook"
    done = subprocess.run(
        [str(program), "-i", str(directory / "inventory.yml"), str(DEPLOY / "ansible" / "site.yml"), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "ANSIBLE_HOME": str(directory / "ansible"), "LC_ALL": "C.UTF-8"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def host_in(directory: Path) -> None:
    """An inventory whose one host is this machine below the directory."""
    for name, text in {"one.whl": "first", "mm2.properties": "clusters = A, B\n"}.items():
        (directory / name).write_text(text)
    python = directory / "python"
    python.write_text(PLAYED_PYTHON)
    python.chmod(0o755)
    told = {
        "ansible_become": False,
        "ansible_python_interpreter": str(programs.python_programs(ANSIBLE) / "python"),
        "sparkmirror_python": str(python),
        "sparkmirror_wheel": str(directory / "one.whl"),
        "sparkmirror_config": str(directory / "mm2.properties"),
        "sparkmirror_secrets": {"source-password": "hush-hush"},
        "sparkmirror_service": False,
        "sparkmirror_prefix": str(directory / "opt"),
        "sparkmirror_config_directory": str(directory / "etc"),
        "sparkmirror_unit_directory": str(directory / "units"),
    }
    hosts = {"localhost": {"ansible_connection": "local"}}
    (directory / "inventory.yml").write_text(yaml.safe_dump({"mirrors": {"hosts": hosts, "vars": told}}))
    (directory / "units").mkdir()


PLAYED_PYTHON = """#!/bin/sh
# In the place of `python3 -m venv DIRECTORY`: its pip installs a program which prints pip's arguments.
mkdir -p "$3/bin"
cat > "$3/bin/pip" <<'END'
#!/bin/sh
printf '#!/bin/sh\\necho "%s"\\n' "$*" > "$(dirname "$0")/sparkmirror"
chmod +x "$(dirname "$0")/sparkmirror"
END
chmod +x "$3/bin/pip"
"""


@pytest.mark.full
def test_the_role_installs_and_upgrades(tmp_path: Path) -> None:
    """Without a package index: pip is played; and without a service."""
    host_in(tmp_path)
    said = playbook(tmp_path)
    assert "hush-hush" not in said
    installed = subprocess.run(
        [str(tmp_path / "opt/current/bin/sparkmirror")], capture_output=True, text=True, check=True
    )
    assert re.fullmatch(r"install --quiet --constraint \S+/constraints.txt \S+/one.whl\[spark\]\n", installed.stdout)
    secret = tmp_path / "etc/secrets/source-password"
    assert (secret.read_text(), oct(secret.stat().st_mode)[-3:]) == ("hush-hush", "600")
    unit = settings(tmp_path / "units/sparkmirror.service")
    assert unit["ExecStart"] == [
        f"{tmp_path}/opt/current/bin/sparkmirror run {tmp_path}/etc/mm2.properties --metrics-port 9404"
    ]
    drop_in = settings(tmp_path / "units/sparkmirror.service.d/secrets.conf")
    assert drop_in == {"LoadCredential": [f"source-password:{secret}"]}

    assert "changed=0 " in playbook(tmp_path)

    before = (tmp_path / "opt/current").resolve()
    (tmp_path / "one.whl").write_text("second")
    assert "changed=0 " not in playbook(tmp_path)
    assert (tmp_path / "opt/current").resolve() != before
    assert (before / "bin/sparkmirror").exists()

    before = (tmp_path / "opt/current").resolve()
    shutil.copy(tmp_path / "mm2.properties", tmp_path / "mirror.yaml")
    playbook(tmp_path, "-e", "sparkmirror_extras=spark,msk", "-e", f"sparkmirror_config={tmp_path}/mirror.yaml")
    assert (tmp_path / "opt/current").resolve() != before
    assert "[spark,msk]" in (tmp_path / "opt/current/bin/sparkmirror").read_text()
    (command,) = settings(tmp_path / "units/sparkmirror.service")["ExecStart"]
    assert f"{tmp_path}/etc/mm2.yaml" in command.split()
    assert (tmp_path / "etc/mm2.yaml").exists()


@pytest.mark.full
def test_ansible_reads_the_playbook(tmp_path: Path) -> None:
    shutil.copy(DEPLOY / "ansible" / "inventory.yml", tmp_path)
    assert "playbook: " in playbook(tmp_path, "--syntax-check")
