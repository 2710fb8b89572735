"""Make this checkout ready to run: a virtual environment with the package in it, Java, Kafka's jars.

    python3 bootstrap.py [--mirror-maker] [--oldest | --lock]

Needs nothing but Python. What is there already is left alone, which takes a moment. `--mirror-maker`
fetches the real MirrorMaker 2's jars too. The Makefile runs this before everything else.
Packages are the newest that pyproject.toml allows, in `.venv`; with `--oldest` the oldest, in `.venv-oldest`.
`--lock` writes what is in `.venv` into constraints.txt, once all tests have passed with it.
Kerberos is added where that is possible: its tests are skipped elsewhere.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

OLDEST = (3, 11)
NEWEST_TO_TRY = 14

ROOT = Path(__file__).resolve().parent
WITH_OLDEST = "--oldest" in sys.argv[1:]
VENV = ROOT / (".venv-oldest" if WITH_OLDEST else ".venv")
LOCK = ROOT / "constraints.txt"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "ready.json"
ADMINS_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin"))
STEPS = ("java", "broker", "broker-2.8.2", "broker-3.6.2")
"""What `sparkmirror.demo.fetch` is to get in any case: the newest brokers, and the old ones of the short tests."""


class SetupError(Exception):
    """Why this machine can't be made ready, and what to type; one line."""


def main() -> int:
    """Do what is not done yet; return the exit code."""
    with_mirror_maker = "--mirror-maker" in sys.argv[1:]
    if "--lock" in sys.argv[1:]:
        return lock()
    if is_ready(with_mirror_maker):
        return 0
    use_new_enough_python()
    try:
        if stamped().get("packages") != packages_hash() or not PYTHON.exists():
            install_packages()
            add_kerberos()
        for step in wanted_steps(with_mirror_maker):
            fetch(step)
    except SetupError as error:
        print(f"bootstrap: {error}", file=sys.stderr)
        return 3
    return 0


def is_ready(with_mirror_maker: bool) -> bool:
    """Whether everything was done before, for this pyproject.toml, and is still there."""
    done = stamped()
    there = all(step in done and os.path.exists(done[step]) for step in wanted_steps(with_mirror_maker))
    return there and done.get("packages") == packages_hash() and PYTHON.exists()


def wanted_steps(with_mirror_maker: bool) -> list[str]:
    """Return what `sparkmirror.demo.fetch` is to get."""
    return [*STEPS, "mirror-maker"] if with_mirror_maker else [*STEPS]


def stamped() -> dict[str, str]:
    """Return what was done: the hash of the packages asked for, and the path that each step made."""
    try:
        done: dict[str, str] = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return done


def stamp(step: str, result: str) -> None:
    """Note that `step` is done."""
    STAMP.write_text(json.dumps({**stamped(), step: result}, indent=1))


def packages_hash() -> str:
    """Return a name for what is to be installed, and where: an editable install breaks if it moves."""
    asked = (ROOT / "pyproject.toml").read_bytes() + str(ROOT).encode()
    return hashlib.sha256(asked).hexdigest()


def use_new_enough_python() -> None:
    """Start again under a newer Python if this one is too old and there is one."""
    if sys.version_info >= OLDEST:
        return
    for minor in range(OLDEST[1], NEWEST_TO_TRY + 1):
        newer = shutil.which(f"python3.{minor}")
        if newer and runs(newer, "--version", quiet=True):
            os.execv(newer, [newer, *sys.argv])  # noqa: S606
    oldest = ".".join(map(str, OLDEST))
    sys.exit(
        f"bootstrap: Python {oldest} or newer is needed, this is {sys.version.split()[0]}; "
        f"install one, for example with: sudo apt-get install python{oldest} python{oldest}-venv"
    )


def install_packages() -> None:
    """Make the virtual environment if there is none, and install the package with all its extras."""
    if not runs(PYTHON, "-m", "pip", "--version", quiet=True):
        make_environment()
    say("Installing Python packages (Spark is 450 MB, once)")
    pip = [
        PYTHON,
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--editable",
        ".[dev]" if WITH_OLDEST else ".[dev,lint]",
    ]
    if WITH_OLDEST:
        pip += ["--constraint", write_oldest()]
    try:
        subprocess.run(
            pip,
            cwd=ROOT,
            check=True,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.CalledProcessError as error:
        raise SetupError("pip failed, see above; when it can work, run this again") from error
    stamp("packages", packages_hash())


def write_oldest() -> Path:
    """Write the lowest version of each package that users install, for pip."""
    import tomllib  # as in `add_kerberos`

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = (texts for name, texts in project["optional-dependencies"].items() if name not in ("dev", "lint"))
    asked = [text for texts in (project["dependencies"], *extras) for text in texts]
    lowest = sorted(text.partition(",")[0].replace(">=", "==") for text in asked if ">=" in text)
    file = VENV / "oldest.txt"
    file.write_text("".join(f"{text}\n" for text in lowest))
    return file


def lock() -> int:
    """Write the versions of all packages in `.venv`, but of Spark: each user has a Spark of their own."""
    pip = [PYTHON, "-m", "pip", "freeze", "--exclude-editable", "--exclude", "pyspark", "--exclude", "py4j"]
    frozen = subprocess.run(pip, check=True, stdout=subprocess.PIPE, text=True)
    head = "# The versions that all tests passed with: pip install sparkmirror --constraint constraints.txt\n"
    LOCK.write_text(head + frozen.stdout)
    return 0


def add_kerberos() -> None:
    """Install what Kerberos takes, with a KDC for its tests, or say what is missing: all else works without it."""
    import tomllib  # not there in the older Python that this may have been started with

    minor = sys.version_info.minor
    needed = {
        "gcc": shutil.which("gcc"),
        "libkrb5-dev": shutil.which("krb5-config"),
        "krb5-kdc": shutil.which("krb5kdc", path=ADMINS_PATH),
        "krb5-admin-server": shutil.which("kadmin.local", path=ADMINS_PATH),
        "krb5-user": shutil.which("kinit"),
        f"python3.{minor}-dev": (Path(sysconfig.get_paths()["include"]) / "Python.h").exists(),
    }
    missing = [package for package, there in needed.items() if not there]
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        say(f"Installing {', '.join(missing)} for the tests of Kerberos")
        runs("apt-get", "-qq", "update", quiet=True)
        # No questions about a realm: the tests have their own.
        quietly = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-y", "--no-install-recommends")
        if runs(*quietly, "install", *missing, quiet=True):
            missing = []
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    pip = (PYTHON, "-m", "pip", "install", "--disable-pip-version-check", *extras["kerberos"])
    if not runs(*pip, quiet=True) or missing:
        print(
            "Kerberos can't be tried here, all else can; for its tests type: sudo apt-get install"
            f" {' '.join(needed)} && .venv/bin/pip install '.[kerberos]'",
            file=sys.stderr,
        )


def make_environment() -> None:
    """Make `.venv`. Debian's Python comes without what that takes: get it, or do without."""
    say(f"Making a virtual environment in {VENV.name}")
    shutil.rmtree(VENV, ignore_errors=True)
    package = f"python3.{sys.version_info.minor}-venv"
    if can_make_environments():
        made = runs(sys.executable, "-m", "venv", VENV)
    elif os.geteuid() == 0 and shutil.which("apt-get"):
        runs("apt-get", "-qq", "update")
        runs("apt-get", "-qq", "-y", "--no-install-recommends", "install", package)
        made = runs(sys.executable, "-m", "venv", VENV)
    else:
        made = runs(sys.executable, "-m", "venv", "--without-pip", VENV) and runs(
            sys.executable, "-m", "pip", "--python", PYTHON, "install", "pip"
        )
    if not made:
        raise SetupError(f"can't make a virtual environment; type: sudo apt-get install {package}")


def can_make_environments() -> bool:
    """Whether this Python brings pip for new environments."""
    return importlib.util.find_spec("ensurepip") is not None


def fetch(step: str) -> None:
    """Have the package find or fetch what `step` names, and note where it is."""
    fetching = subprocess.run(
        [PYTHON, "-m", "sparkmirror.demo.fetch", step],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    if fetching.returncode:
        raise SetupError(f"no {step}, see above; when it can work, run this again")
    stamp(step, fetching.stdout.strip())


def runs(*command: str | Path, quiet: bool = False) -> bool:
    """Run a command; return whether it succeeded. What it says is shown if it failed, unless `quiet`."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except OSError:
        return False
    if done.returncode and not quiet:
        print(done.stdout, done.stderr, sep="", end="", file=sys.stderr)
    return done.returncode == 0


def say(what: str) -> None:
    """Tell the person at the terminal what takes so long."""
    print(f"{what} ...", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
