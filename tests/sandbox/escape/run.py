"""Run a probe and judge it: blocked, logged, ended by the right limit, and the host unharmed."""

import json
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gametape.sandbox.backend import Sandbox, SandboxSpec
from gametape.sandbox.policy import SECRET_PATHS, SandboxLimits, SandboxPolicy
from gametape.sandbox.result import ExecResult, PolicyViolation
from tests.patience import HANG
from tests.sandbox.escape.probe import Probe, source
from tests.sandbox.escape.stage import Stage

_LIMITS = {"wall_seconds": HANG, "memory_mb": 512, "processes": 64, "disk_mb": 64, "output_bytes": 100_000}


@dataclass
class Trial:
    """One run of a probe, with everything that is needed to judge it."""

    probe: Probe
    nonce: str
    result: ExecResult
    seconds: float
    escaped: list[str] = field(default_factory=list)
    harm: list[str] = field(default_factory=list)


def attempt(probe: Probe, stage: Stage, start: Callable[[SandboxSpec], Sandbox], weaker: bool = False) -> Trial:
    """Run it in a sandbox that `start` makes. `weaker` gives it what it needs to get through."""
    nonce = "n" + secrets.token_hex(10)
    with stage.workspace() as workspace:
        facts = stage.facts(workspace)
        limits = SandboxLimits(**{**_LIMITS, **probe.limits})
        policy = {**probe.policy, **(_filled(probe.granted, facts) if weaker else {})}
        facts |= _filled(probe.planted, facts) if weaker else {}
        sandbox = start(
            SandboxSpec(
                workspace=workspace, policy=SandboxPolicy(**{"watched": SECRET_PATHS, "limits": limits, **policy})
            )
        )
        argv = [word.replace("{nonce}", nonce) for word in probe.argv]
        said: list[str] = []
        with _Meanwhile(probe, sandbox, workspace, stage, said):
            began = time.monotonic()
            result = sandbox.exec(argv or ["python3", "-c", source(probe, nonce)], json.dumps(facts).encode())
            seconds = time.monotonic() - began
        if probe.after:
            said += _heard(probe.after(sandbox, workspace, stage))
        trial = Trial(probe, nonce, result, seconds, said)
        if f"ESCAPED: {nonce}" in result.stdout:
            trial.escaped.append("the command got through")
        trial.harm = stage.harm(nonce, workspace)
        sandbox.close()
    return trial


def attempt_bare(probe: Probe, stage: Stage) -> str:
    """The same program on the host itself."""
    with stage.workspace() as workspace:
        facts = stage.facts(workspace)
        done = subprocess.run(
            [sys.executable, "-c", source(probe, "bare")],
            input=json.dumps(facts),
            close_fds=False,
            capture_output=True,
            text=True,
            timeout=HANG,
            check=False,
        )
        stage.contacts.clear()
    return done.stdout + done.stderr


def complaints(trial: Trial, events: bool) -> list[str]:
    """How the isolation failed. Empty: it held."""
    probe, result = trial.probe, trial.result
    found = [*trial.escaped, *trial.harm]
    refused = probe.or_refused and result.killed_by is None and "blocked: " in result.stdout
    if result.killed_by != probe.killed_by and not refused:
        found.append(f"killed_by is {result.killed_by}, not {probe.killed_by}")
    if probe.killed_by is None and not probe.argv and "blocked: " not in result.stdout:
        found.append("the probe itself is broken")
    if events and probe.logged and not any(_names(entry, trial) for entry in result.violations):
        found.append(f"{probe.logged} with the nonce is not in the record")
    return found


def explain(trial: Trial) -> str:
    result = trial.result
    record = "\n".join(f"  {entry.syscall} {entry.args} {entry.action}" for entry in result.violations[:8])
    return (
        f"{trial.probe.family}/{trial.probe.name}: exit {result.exit_code}, killed_by {result.killed_by}, "
        f"{trial.seconds:.2f} s\nstdout: {result.stdout[-800:]}\nstderr: {result.stderr[-800:]}\nrecord:\n{record}"
    )


def _names(entry: PolicyViolation, trial: Trial) -> bool:
    inside = trial.nonce in entry.command or any(trial.nonce in str(arg) for arg in entry.args)
    return entry.syscall == trial.probe.logged and inside


def _filled(values: dict[str, Any], facts: dict[str, Any]) -> dict[str, Any]:
    """Values with `{name}` replaced by the stage's facts, inside tuples too."""

    def fill(value: Any) -> Any:
        if isinstance(value, str):
            whole = value.startswith("{") and value.endswith("}") and value[1:-1] in facts
            return facts[value[1:-1]] if whole else value.format(**facts)
        return tuple(map(fill, value)) if isinstance(value, tuple) else value

    return {name: fill(value) for name, value in values.items()}


def _heard(word: str | None) -> list[str]:
    return [word] if word else []


class _Meanwhile:
    """The host's side of a race, in a thread of its own."""

    def __init__(self, probe: Probe, sandbox: Sandbox, workspace: Path, stage: Stage, said: list[str]) -> None:
        self._thread = threading.Thread(target=self._run, args=(probe, sandbox, workspace, stage, said))

    def _run(self, probe: Probe, sandbox: Sandbox, workspace: Path, stage: Stage, said: list[str]) -> None:
        try:
            said += _heard(probe.during(sandbox, workspace, stage)) if probe.during else []
        except OSError as error:
            said.append(f"the host's side failed: {error!r}")
        finally:
            if probe.during:
                (workspace / "stop").touch()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._thread.join()
