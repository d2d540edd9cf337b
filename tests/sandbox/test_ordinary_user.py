"""The same probes with gametape run by an ordinary user: no root, no control groups, the same answers."""

import functools
from typing import Any

import pytest

from tests.sandbox.escape import PROBES
from tests.sandbox.ordinary import run_as_ordinary_user

_TRIED = [f"{probe.family}/{probe.name}" for probe in PROBES if probe.unprivileged and not probe.slow]
_SAMPLE = _TRIED[::3]
"""The others are slow: root tries all of them every time."""
_BACKENDS = ("bubblewrap", pytest.param("oci", marks=pytest.mark.slow))


@functools.cache
def report(backend: str, sample: bool) -> Any:
    """What the probes came to, in one process for all of them."""
    probes = _SAMPLE if sample else [name for name in _TRIED if name not in _SAMPLE]
    return run_as_ordinary_user("tests.sandbox.ordinary_runner", {"backend": backend, "probes": probes})


def _found(backend: str, sample: bool = True) -> Any:
    found = report(backend, sample)
    if not found["available"]:
        pytest.skip(f"an ordinary user has no {backend} sandbox here: " + "; ".join(found["missing"]))
    return found


@pytest.mark.parametrize("backend", _BACKENDS)
def test_it_was_an_ordinary_user(backend: str) -> None:
    found = _found(backend)
    assert found["user"] != 0
    assert found["capabilities"]["rootless"]
    assert found["capabilities"]["network_isolation"]
    assert found["capabilities"]["syscall_events"]


@pytest.mark.parametrize("backend", _BACKENDS)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in _SAMPLE else [pytest.mark.slow]) for name in _TRIED]
)
def test_blocked_for_an_ordinary_user(name: str, backend: str) -> None:
    verdict = _found(backend, name in _SAMPLE)["verdicts"][name]
    assert not verdict, "\n".join(verdict)
