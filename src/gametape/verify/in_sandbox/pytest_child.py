"""One process, one test file: the agent's code and the tests live here, so nothing here is to be believed."""

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
from .workspace_files import WORKSPACE

_blanked: set[str] = set()
"""Test files that are emptied once they are compiled, before anything they import is."""


def _compile_and_blank(path: Path, *more: Any) -> Any:
    compiled = _compile(path, *more)
    if str(path) in _blanked:
        os.truncate(path, 0)
    return compiled


_compile, rewrite._rewrite_test = rewrite._rewrite_test, _compile_and_blank  # type: ignore[assignment]


def run_file(
    watch: audit_hook.RunnerFingerprint, job: dict[str, Any], step: dict[str, Any], out: int, connection: int | None
) -> None:
    """Run the wanted tests of one file and tell about each on `out`. Never returns to the zygote's code.

    With a connection, the agent's modules are not here: what the tests import of them is a proxy.
    """
    tell, told = make_writers(out)
    patched: set[str] = set()

    def look(changes: Callable[[], list[str]]) -> None:
        for name in changes():
            if name not in patched:
                patched.add(name)
                told("patched", name, "", 0)

    os.chdir(WORKSPACE)
    roots = [_inside(root) for root in job["import_roots"]]
    sys.path[:0] = roots
    sys.dont_write_bytecode = True
    session = None
    sources = [_inside(path) for path in job["source_paths"]]
    if connection is not None:
        surface = job["split"]
        wire = socket.socket(fileno=connection)
        session = proxy.install_proxy(wire, surface["modules"], surface["classes"], roots, step["call_seconds"])
    else:
        audit_hook.install_audit_hook(told, sources)

    def correct(result: str) -> str:
        """What became of a test, once its process has been looked at."""
        look(watch.quick_changes)
        look(intact)
        if session is None or session.lost is None or result == "passed":
            return result
        if "worker lost" not in patched:
            patched.add("worker lost")
            told("worker lost", session.lost, "", 0)
        return "timed_out" if session.timed_out else "failed"

    reporter = Reporter(tell, step["tests"], step["shuffle"], correct)
    intact = guard(reporter, sources)
    ran = line_coverage.start_line_coverage([_inside(path) for path in step["trace"]]) if step["trace"] else dict
    _blanked.update([_inside(step["path"])] if step["blank"] else [])
    code = pytest.main([*job["options"], _inside(step["path"])], plugins=[reporter])
    look(watch.changes)
    look(intact)
    tell({"covered": {os.path.relpath(path, WORKSPACE): seen for path, seen in ran().items()}})
    tell({"finished": int(code)})
    os._exit(0)


def _inside(path: str) -> str:
    return os.path.normpath(os.path.join(WORKSPACE, path))
