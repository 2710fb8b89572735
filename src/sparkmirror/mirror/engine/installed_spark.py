"""Check of this machine's Spark: present, and of a version sparkmirror runs on.

Only the extra `spark` brings a Spark, since EMR, Dataproc and other images have their own.
"""

from __future__ import annotations

import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path

from sparkmirror.errors import SetupError

OLDEST, NEWEST = (3, 5), (4, 3)
"""Oldest and newest minor version that are tested.

The tests are `tests/versions/test_sparks.py`; `pyproject.toml` has the same range.
"""

SPARK_HOME = "SPARK_HOME"


def require_spark(extra: str = "spark") -> None:
    """Raise `SetupError` unless this Python can import a PySpark in the range.

    The error names the `extra` that brings one. If this Python has no PySpark, the PySpark in `SPARK_HOME` is taken, as
    `spark-submit` does.
    """
    remedy = f"pip install 'sparkmirror[{extra}]' brings one"
    if find_spec("pyspark") is None:
        sys.path += _archives_of_home()
    try:
        import pyspark
        import pyspark.sql.pandas.utils  # for the Arrow path; on 3.5 it needs distutils, which Python 3.12 lacks
    except ImportError as error:
        raise SetupError(
            f"PySpark is needed and can't be imported ({error}): {remedy}; where this machine has a Spark, set"
            f" {SPARK_HOME} to its directory"
        ) from error
    version = pyspark.__version__
    place = Path(pyspark.__file__).parent
    minor = _minor(version)
    if minor is None or not OLDEST <= minor <= NEWEST:
        age = "old" if minor is not None and minor < OLDEST else "new"
        raise SetupError(
            f"PySpark {version} at {place} is too {age}, sparkmirror runs on {_words(OLDEST)} to {_words(NEWEST)}:"
            f" {remedy}, in a virtual environment if other programs need this one"
        )
    jars = _minor_of_jars()
    if jars is not None and jars != minor:
        raise SetupError(
            f"PySpark {version} at {place} can't drive the Spark {_words(jars)} that {SPARK_HOME} names"
            f" ({os.environ[SPARK_HOME]}): unset {SPARK_HOME}, or pip uninstall pyspark, so that"
            " the PySpark of that Spark is taken"
        )


def _archives_of_home() -> list[str]:
    """Return the archives with PySpark and py4j below `SPARK_HOME`; may be none."""
    home = os.environ.get(SPARK_HOME)
    return [str(path) for path in sorted(Path(home, "python", "lib").glob("*.zip"))] if home else []


def _minor_of_jars() -> tuple[int, int] | None:
    """Return the minor version of the jars below `SPARK_HOME`; None without them.

    These jars win over PySpark's own.
    """
    home = os.environ.get(SPARK_HOME)
    cores = Path(home, "jars").glob("spark-core_*.jar") if home else ()
    return next((_minor(core.stem.partition("-core_")[2].partition("-")[2]) for core in cores), None)


def _minor(version: str) -> tuple[int, int] | None:
    """Return the first two numbers; vendors add more than numbers after them."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return (int(numbers[1]), int(numbers[2])) if numbers else None


def _words(minor: tuple[int, int]) -> str:
    return ".".join(map(str, minor))
