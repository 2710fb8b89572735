"""What `import sparkmirror as sm` offers, and what it costs who asks for nothing."""

from __future__ import annotations

import inspect
import subprocess
import sys

import sparkmirror as sm


def test_each_name_is_there_with_a_docstring() -> None:
    assert sm.__all__ == sorted(sm.__all__)
    assert set(sm.__all__) <= set(dir(sm))
    for name in sm.__all__:
        each = getattr(sm, name)
        assert name == "__version__" or inspect.getdoc(each)
    assert not hasattr(sm, "Maker")


def test_the_import_brings_no_spark_and_no_client() -> None:
    code = "import sparkmirror, sys; print(sorted({'pyspark', 'kafka', 'pydantic'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_module_runs_as_the_program() -> None:
    done = subprocess.run([sys.executable, "-m", "sparkmirror", "version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == sm.__version__
