"""What `import sparkmirror as sm` offers, and what it costs who asks for nothing."""

from __future__ import annotations

import inspect
import subprocess
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

import sparkmirror as sm
from sparkmirror.errors import SetupError


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


@pytest.mark.parametrize(
    "question",
    [
        lambda mirror: mirror.status(),
        lambda mirror: mirror.losses(),
        lambda mirror: mirror.groups(),
        lambda mirror: mirror.verify(),
        lambda mirror: mirror.receipts(),
        lambda mirror: mirror.offset_map(),
        lambda mirror: mirror.translate("orders", 0, 7),
        lambda mirror: mirror.stop(),
    ],
)
def test_the_next_call_raises_the_error_of_a_mirror_that_failed(question: Callable[[sm.Mirror], object]) -> None:
    """Before it asks any cluster; the call after it is answered."""
    ended = threading.Thread(target=lambda: None)
    ended.start()
    mirror = sm.Mirror(source="127.0.0.1:1", target="127.0.0.1:2", topics="orders")
    mirror.__dict__.update(
        _session=object(), _engine=SimpleNamespace(stop=lambda: None), _thread=ended, _error=SetupError("no Java")
    )
    with pytest.raises(SetupError, match="no Java"):
        question(mirror)
    assert mirror.__dict__["_error"] is None


def test_the_module_runs_as_the_program() -> None:
    done = subprocess.run([sys.executable, "-m", "sparkmirror", "version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == sm.__version__
