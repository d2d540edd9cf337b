"""One process for one test file. The agent's code and the tests share it, so the host trusts nothing it reports."""

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion import rewrite

from . import audit_hook, line_coverage, proxy
from .child_output import make_writers
from .reporter import Reporter, guard
from .runner_fingerprint import RunnerFingerprint
from .workspace_files import WORKSPACE, in_workspace

_blanked: set[str] = set()
"""Test files that are emptied once they are compiled, before the modules that they import are loaded."""


def _compile_and_blank(path: Path, *more: Any) -> Any:
    compiled = _compile(path, *more)
    if str(path) in _blanked:
        os.truncate(path, 0)
    return compiled


_compile, rewrite._rewrite_test = rewrite._rewrite_test, _compile_and_blank  # type: ignore[assignment]


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

    def report_patches(changes: Callable[[], list[str]]) -> None:
        for name in changes():
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
        session = proxy.install_proxy(wire, surface["modules"], surface["classes"], roots, step["call_seconds"])
    else:
        audit_hook.install_audit_hook(tell_event, sources)

    def correct(result: str) -> str:
        """The result of a test, after a check of the runner and of the connection to the worker."""
        report_patches(fingerprint.quick_changes)
        report_patches(reporter_changes)
        if session is None or session.lost is None or result == "passed":
            return result
        if "worker lost" not in patched:
            patched.add("worker lost")
            tell_event("worker lost", session.lost, "", 0)
        return "timed_out" if session.timed_out else "failed"

    reporter = Reporter(tell, step["tests"], step["shuffle"], correct)
    reporter_changes = guard(reporter, sources)
    covered_lines = (
        line_coverage.start_line_coverage([in_workspace(path) for path in step["trace"]]) if step["trace"] else dict
    )
    _blanked.update([in_workspace(step["path"])] if step["blank"] else [])
    code = pytest.main([*job["options"], in_workspace(step["path"])], plugins=[reporter])
    report_patches(fingerprint.changes)
    report_patches(reporter_changes)
    tell({"covered": {os.path.relpath(path, WORKSPACE): lines for path, lines in covered_lines().items()}})
    tell({"finished": int(code)})
    os._exit(0)
