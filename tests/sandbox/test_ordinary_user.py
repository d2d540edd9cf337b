"""The same probes with gametape run by an ordinary user: no root, no control groups, the same answers."""

import functools
from typing import Any

import pytest

from tests.sandbox.escape import PROBES
from tests.sandbox.ordinary import run_as_ordinary_user

_TRIED = [f"{probe.family}/{probe.name}" for probe in PROBES if probe.unprivileged and not probe.slow]
_BACKENDS = ("bubblewrap", pytest.param("oci", marks=pytest.mark.slow))


@functools.cache
def report(backend: str) -> Any:
    """What every probe came to, in one process for all of them."""
    return run_as_ordinary_user("tests.sandbox.ordinary_runner", {"backend": backend, "probes": _TRIED})


def _found(backend: str) -> Any:
    found = report(backend)
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
@pytest.mark.parametrize("name", _TRIED)
def test_blocked_for_an_ordinary_user(name: str, backend: str) -> None:
    verdict = _found(backend)["verdicts"][name]
    assert not verdict, "\n".join(verdict)
