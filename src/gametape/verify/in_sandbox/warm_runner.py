"""The first program of the sandbox of a `WarmTestRunner`: it collects, runs and observes the tests of a code base.

Results are not protected against forgery here: the code is that of the repository, not of an agent.
"""

import contextlib
import faulthandler  # noqa: F401 - pytest imports this and pdb when it starts; so no child has to
import io
import os
import pdb  # noqa: F401
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from _pytest.config import get_config

from . import function_coverage, side_effects
from .child_output import make_writers
from .reporter import Reporter, Tell
from .supervisor import ChildSupervisor
from .workspace_files import WORKSPACE, in_workspace


def main() -> None:
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    get_config()._ensure_unconfigure()  # imports pytest's own plugins
    ChildSupervisor().work(_run_request)


class CollectionReporter:
    """Reports the collected tests, and the files that cannot be collected."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._tell({"broken": report.nodeid, "message": report.longreprtext[-4000:]})

    def pytest_internalerror(self, excrepr: object) -> None:
        self._tell({"broken": "", "message": str(excrepr)[-4000:]})

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> Iterator[None]:
        self._tell({"collected": [item.nodeid for item in items]})
        return (yield)


def _short_failure(_item: pytest.Function, excinfo: pytest.ExceptionInfo[BaseException], **_more: object) -> str:
    """The exception without its traceback: to read source lines for it takes longer than most tests."""
    return excinfo.exconly()


def _run_request(job: dict[str, Any], step: dict[str, Any], out: int, _connection: int | None) -> None:
    """One process over some test files: collect their tests, or run the wanted ones."""
    tell, _ = make_writers(out)
    os.chdir(WORKSPACE)
    sys.path[:0] = [in_workspace(root) for root in job["import_roots"]]
    sys.dont_write_bytecode = True
    pytest.Function.repr_failure = _short_failure  # type: ignore[method-assign, assignment]
    plugins: list[Any] = [CollectionReporter(tell)]
    options = [*job["options"], *(["--collect-only"] if step["collect"] else [])]
    if not step["collect"]:
        plugins.append(Reporter(tell, step["tests"], step["shuffle"], lambda result: result))
    recorder = side_effects.SideEffectRecorder() if step["watch"] else None
    reach = (
        function_coverage.FunctionCoverage({in_workspace(path): spans for path, spans in step["spans"].items()})
        if step["spans"]
        else None
    )
    plugins += [plugin for plugin in (recorder, reach) if plugin]
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        code = pytest.main([*options, *map(in_workspace, step["paths"])], plugins=plugins)
    if code == pytest.ExitCode.USAGE_ERROR:
        tell({"broken": "", "message": errors.getvalue()[-4000:]})
    if recorder:
        tell({"deeds": recorder.tests_by_effect})
    if reach:
        tell({"reached": {os.path.relpath(path, WORKSPACE): tests for path, tests in reach.answer().items()}})
    tell({"finished": int(code)})
    os._exit(0)
