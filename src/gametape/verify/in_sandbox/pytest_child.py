"""One process for one test file. The agent's code and the tests share it, so the host trusts nothing it reports."""

import os
import socket
import sys
from typing import Any

import pytest

from . import audit_hook, line_coverage, neutral_ids, proxy
from .child_output import make_writers
from .held_tests import hold_tests
from .reporter import Reporter
from .runner_fingerprint import RunnerFingerprint
from .runner_guard import RunnerGuard
from .scratch_fixtures import ScratchFixtures
from .workspace_files import SCRATCH, WORKSPACE, in_workspace


def run_file(
    fingerprint: RunnerFingerprint,
    job: dict[str, Any],
    step: dict[str, Any],
    out: int,
    connection: int | None,
) -> None:
    """Run the wanted tests of one file and report each on `out`. Never returns to the zygote's code.

    With a connection, the agent's modules are in another sandbox, and the tests import proxies of them.
    """
    tell, tell_event = make_writers(out)
    patched: set[str] = set()

    def report_patches(changes: list[str]) -> None:
        for name in changes:
            if name not in patched:
                patched.add(name)
                tell_event("patched", name, "", 0)

    os.chdir(WORKSPACE)
    roots = [in_workspace(root) for root in job["import_roots"]]
    sys.path[:0] = roots
    sys.dont_write_bytecode = True
    session = None
    sources = [in_workspace(path) for path in job["source_paths"]]
    if connection is not None:
        surface = job["split"]
        wire = socket.socket(fileno=connection)
        session = proxy.install_proxy(
            wire,
            surface["modules"],
            surface["classes"],
            roots,
            step["call_seconds"],
            scratch=SCRATCH,
            workspace=WORKSPACE,
        )
    else:
        audit_hook.install_audit_hook(tell_event, sources)

    def correct(result: str) -> str:
        """The result of a test, after a check of the runner and of the connection to the worker."""
        report_patches(fingerprint.quick_changes())
        report_patches(guard.changes())
        if session is None or session.lost is None or result == "passed":
            return result
        if "worker lost" not in patched:
            patched.add("worker lost")
            tell_event("worker lost", session.lost, "", 0)
        return "timed_out" if session.timed_out else "failed"

    reporter = Reporter(tell, step["tests"], step["shuffle"], correct)
    guard = RunnerGuard(
        reporter,
        sources,
        report_patches,
        hold_tests(step.pop("texts")),
        neutral_ids.forget_key,
        fingerprint.quick_changes,
    )
    if key := step.pop("key"):
        neutral_ids.use_key(bytes.fromhex(key))
    del key
    covered_lines = (
        line_coverage.start_line_coverage([in_workspace(path) for path in step["trace"]]) if step["trace"] else dict
    )
    plugins: list[object] = [guard, reporter] if session is None else [guard, reporter, ScratchFixtures()]
    code = pytest.main([*job["options"], in_workspace(step["path"])], plugins=plugins)
    report_patches(fingerprint.changes())
    report_patches(guard.changes())
    tell({"covered": {os.path.relpath(path, WORKSPACE): lines for path, lines in covered_lines().items()}})
    tell({"finished": int(code)})
    os._exit(0)
