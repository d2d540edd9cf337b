"""The first program of a sandbox in which a code base is looked over: its tests are found, run, and watched.

Nobody forges results here: the code is the author's own, and what it would gain is a task that is thrown away later.
"""

import contextlib
import faulthandler  # noqa: F401 - this and pdb are imported by pytest when it starts, so no child has to
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
from .workspace_files import WORKSPACE


def main() -> None:
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    get_config()._ensure_unconfigure()  # imports pytest's own plugins
    ChildSupervisor().work(_run_request)


class CollectionReporter:
    """Tells which tests there are, and which files of them cannot be read."""

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
    """What was raised, without the way there: reading that from the sources takes longer than most tests."""
    return excinfo.exconly()


def _run_request(job: dict[str, Any], step: dict[str, Any], out: int, _connection: int | None) -> None:
    """One process over some test files: find their tests, or run those that are wanted."""
    tell, _ = make_writers(out)
    os.chdir(WORKSPACE)
    sys.path[:0] = [_inside(root) for root in job["import_roots"]]
    sys.dont_write_bytecode = True
    pytest.Function.repr_failure = _short_failure  # type: ignore[method-assign, assignment]
    plugins: list[Any] = [CollectionReporter(tell)]
    options = [*job["options"], *(["--collect-only"] if step["collect"] else [])]
    if not step["collect"]:
        plugins.append(Reporter(tell, step["tests"], step["shuffle"], lambda result: result))
    watched = side_effects.SideEffectRecorder() if step["watch"] else None
    reached = (
        function_coverage.FunctionCoverage({_inside(path): spans for path, spans in step["spans"].items()})
        if step["spans"]
        else None
    )
    plugins += [one for one in (watched, reached) if one]
    with contextlib.redirect_stderr(io.StringIO()) as said:
        code = pytest.main([*options, *map(_inside, step["paths"])], plugins=plugins)
    if code == pytest.ExitCode.USAGE_ERROR:
        tell({"broken": "", "message": said.getvalue()[-4000:]})
    if watched:
        tell({"deeds": watched.tests_by_effect})
    if reached:
        tell({"reached": {os.path.relpath(path, WORKSPACE): found for path, found in reached.answer().items()}})
    tell({"finished": int(code)})
    os._exit(0)


def _inside(path: str) -> str:
    return os.path.normpath(os.path.join(WORKSPACE, path))
