"""One suite of promises against every backend that works here, as this user and as an ordinary one.

The default backend is held to them on every run, the others by `make test-slow`.
"""

import functools
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.conformance import BACKENDS, CASES, Bench
from tests.sandbox.ordinary import run_as_ordinary_user

_EACH = [name if name == "bubblewrap" else pytest.param(name, marks=pytest.mark.slow) for name in BACKENDS]
_FOR_OTHERS = [name for name in _EACH if getattr(name, "values", (name,)) != ("docker",)]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("backend", _EACH)
def test_promise(backend: str, case: str, tmp_path: Path) -> None:
    probe = BACKENDS[backend]().probe()
    if not probe.available:
        pytest.skip(f"{backend} does not work here: " + "; ".join(probe.missing))
    CASES[case](Bench(backend, tmp_path))


@functools.cache
def report(backend: str) -> Any:
    """What an ordinary user found, in one process for all promises."""
    return run_as_ordinary_user("tests.sandbox.conformance.runner", [(backend, case) for case in CASES])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("backend", _FOR_OTHERS)
def test_promise_to_an_ordinary_user(backend: str, case: str) -> None:
    found = report(backend)
    assert found["user"] != 0
    if found["missing"][backend]:
        pytest.skip(f"{backend} does not work for an ordinary user here: {found['missing'][backend]}")
    assert f"{backend}/{case}" not in found["wrong"], found["wrong"][f"{backend}/{case}"]
