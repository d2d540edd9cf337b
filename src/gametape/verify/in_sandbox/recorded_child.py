"""One process for one test that is recorded: the reference answers from another sandbox.

Nothing hostile is here, so nothing of the runner is watched. A suite is recorded with a process for each test, which is
why this one does no more than the test needs: assertions are not rewritten, other classes of the file are not
collected, and the process ends as soon as the result is known.
"""

import os
import socket
import sys
from typing import Any

import pytest

from . import proxy
from .child_output import make_writers
from .proxy_session import ProxySession
from .reporter import Reporter, Tell
from .scratch_fixtures import ScratchFixtures
from .workspace_files import SCRATCH, WORKSPACE, in_workspace


def record_test(job: dict[str, Any], step: dict[str, Any], out: int, connection: int) -> None:
    """Run the one wanted test of a file and report it on `out`. Never returns to the zygote's code."""
    tell, tell_event = make_writers(out)
    os.chdir(WORKSPACE)
    roots = [in_workspace(root) for root in job["import_roots"]]
    sys.path[:0] = roots
    sys.dont_write_bytecode = True
    session = _connect(job, step, connection, roots)

    def correct(result: str) -> str:
        if session.lost is None or result == "passed":
            return result
        tell_event("worker lost", session.lost, "", 0)
        return "timed_out" if session.timed_out else "failed"

    (test,) = step["tests"]
    plugins = [Reporter(tell, [test], None, correct), ScratchFixtures(), _Leave(tell)]
    pytest.main([*job["options"], "--assert=plain", in_workspace(_without_case(test))], plugins=plugins)
    os._exit(1)  # without a session, so without a result


def _connect(job: dict[str, Any], step: dict[str, Any], connection: int, roots: list[str]) -> ProxySession:
    return proxy.install_proxy(
        socket.socket(fileno=connection),
        job["split"]["modules"],
        job["split"]["classes"],
        roots,
        step["call_seconds"],
        recorded=True,
        scratch=SCRATCH,
        workspace=WORKSPACE,
    )


def _without_case(test: str) -> str:
    """The id of a test without the case of its parameters: a case may hold any text, and pytest splits some of it."""
    return test.partition("[")[0]


class _Leave:
    """A pytest plugin that ends the process when the session is over."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, exitstatus: int) -> None:
        self._tell({"finished": int(exitstatus)})
        os._exit(0)
