"""Every probe against every backend: blocked, logged, the host unharmed; and every probe shown to be sharp."""

import dataclasses
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.sandbox.backend import Sandbox, SandboxSpec, open_backend
from gametape.sandbox.bubblewrap import BubblewrapBackend
from gametape.sandbox.policy import SandboxLimits
from tests.patience import HANG
from tests.sandbox.escape import PROBES
from tests.sandbox.escape.probe import NUMBERS, Probe
from tests.sandbox.escape.run import attempt, attempt_bare, complaints, explain
from tests.sandbox.escape.stage import Stage

BACKENDS = ("bubblewrap", pytest.param("oci", marks=pytest.mark.slow))
LEAST = 120
_WEAKER = [probe for probe in PROBES if probe.escapes_without or probe.granted or probe.planted]


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    planted = Stage()
    yield planted
    planted.close()


def _params(probes: list[Probe]) -> list[object]:
    return [
        pytest.param(probe, id=f"{probe.family}/{probe.name}", marks=[pytest.mark.slow] if probe.slow else [])
        for probe in probes
    ]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("probe", _params(PROBES))
def test_blocked(probe: Probe, backend: str, stage: Stage) -> None:
    opened = open_backend(backend)
    state = opened.probe()
    if not state.available:
        pytest.skip("; ".join(state.missing))
    trial = attempt(probe, stage, opened.start)
    assert not complaints(trial, state.capabilities.syscall_events), explain(trial)


@pytest.mark.parametrize("probe", _params(_WEAKER))
def test_gets_through_a_weaker_wall(probe: Probe, stage: Stage) -> None:
    """No probe is vacuous: with what it names taken away or granted, it says that it escaped."""
    backend = BubblewrapBackend()
    trial = attempt(probe, stage, lambda spec: backend.start(spec, without=probe.escapes_without), weaker=True)
    assert "the command got through" in trial.escaped, explain(trial)


@pytest.mark.parametrize("probe", _params([probe for probe in PROBES if probe.bare]))
def test_works_on_the_host(probe: Probe, stage: Stage) -> None:
    assert "ESCAPED: bare" in attempt_bare(probe, stage)


_BOMBS = [probe for probe in PROBES if probe.bomb]
_QUICK_BOMBS = [*{probe.killed_by: probe for probe in reversed(_BOMBS) if not probe.slow}.values()]
_SLOW_BOMBS = [dataclasses.replace(probe, slow=True) for probe in _BOMBS if probe not in _QUICK_BOMBS]


@pytest.mark.parametrize("probe", _params([*_QUICK_BOMBS, *_SLOW_BOMBS]))
def test_bombs_are_real(probe: Probe, stage: Stage) -> None:
    """Under roomy limits the same bomb goes off to its end: it was the limit that stopped it."""
    roomy = SandboxLimits(
        wall_seconds=HANG, memory_mb=2048, disk_mb=2048, processes=1024, output_bytes=1 << 28, open_files=1 << 17
    )
    changed = dataclasses.replace(probe, limits=roomy.model_dump())
    trial = attempt(changed, stage, BubblewrapBackend().start)
    assert trial.result.killed_by is None, explain(trial)
    assert trial.result.exit_code == 0, explain(trial)
    assert "blocked: " not in trial.result.stdout, explain(trial)


class _Careless:
    """A host that reads and writes the workspace by plain paths."""

    def __init__(self, sandbox: Sandbox, workspace: Path) -> None:
        self.exec, self.close = sandbox.exec, sandbox.close
        self._workspace = workspace

    def get(self, path: str) -> bytes:
        try:
            return (self._workspace / path).read_bytes()
        except OSError as error:
            raise BadInput(str(error)) from error

    def put(self, path: str, content: bytes) -> None:
        try:
            (self._workspace / path).write_bytes(content)
        except OSError as error:
            raise BadInput(str(error)) from error


@pytest.mark.parametrize("probe", _params([probe for probe in PROBES if probe.naive]))
def test_traps_catch_a_careless_host(probe: Probe, stage: Stage) -> None:
    def start(spec: SandboxSpec) -> Sandbox:
        assert spec.workspace is not None
        return _Careless(BubblewrapBackend().start(spec), spec.workspace)

    trial = attempt(probe, stage, start)
    stage.mend()
    assert trial.escaped or trial.harm, explain(trial)


def test_there_are_enough() -> None:
    names = Counter((probe.family, probe.name) for probe in PROBES)
    assert not [name for name, count in names.items() if count > 1]
    assert len(PROBES) >= LEAST


def test_every_probe_is_sharp_or_says_why_not() -> None:
    assert not [probe.name for probe in PROBES if not probe.sharp and not probe.unshown]
    assert not [probe.name for probe in PROBES if probe.sharp and probe.unshown]


def test_the_wall_counts_calls_as_we_do() -> None:
    """Two tables, written down apart, agree."""
    from gametape.sandbox import syscalls

    if syscalls.machine() != "x86_64":
        pytest.skip("the table is for x86-64")
    theirs = syscalls.numbers()
    assert {name: theirs[name] for name in NUMBERS if name in theirs} == {
        name: number for name, number in NUMBERS.items() if name in theirs
    }
