"""No test depends on how fast the machine is: what tests may not do, and how they measure work instead."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.patience import HANG, wait_until

_TESTS = Path(__file__).parent
_CLOCKS = {"monotonic", "perf_counter", "time", "process_time", "thread_time"}
_WAITS = {"communicate", "run", "wait", "result", "exception", "join", "check_output", "check_call"}
_SHORTEST = 60
_READS_TIME = {"test_patience.py", "patience.py"}


def _complaints(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        line = f"{path.relative_to(_TESTS)}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Compare) and isinstance(node.left, ast.BinOp) and _is_clock(node.left.left):
            yield f"{line} compares a duration; measure `effort`, or wait for what must happen"
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        given = {keyword.arg: keyword.value for keyword in node.keywords}
        if name in _WAITS and not _is_awaited_inside(node) and _is_short(given.get("timeout")):
            yield f"{line} waits for a short time; a wait that only guards against a hang takes `HANG`"
        if name in ("timeout", "wait_for") and node.args and _is_short(node.args[-1]):
            yield f"{line} waits for a short time; a wait that only guards against a hang takes `HANG`"
        if name == "settings" and not _is_none(given.get("deadline")):
            yield f"{line} gives examples a deadline"
        if name == "settings" and not _lets_them_be_slow(given.get("suppress_health_check")):
            yield f"{line} has examples that may be too slow"


def _is_awaited_inside(node: ast.Call) -> bool:
    """`workspace.run(...)` has the limit of a command in a sandbox, which tests are free to reach."""
    return isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) == "workspace"


def _lets_them_be_slow(node: ast.AST | None) -> bool:
    """A list of one's own replaces the one of `conftest.py`."""
    return node is None or isinstance(node, ast.Name) or "*HealthCheck" in ast.unparse(node)


def _is_clock(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CLOCKS


def _is_short(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and node.value < _SHORTEST


def _is_none(node: ast.AST | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)


def test_no_test_depends_on_how_fast_the_machine_is() -> None:
    files = [path for path in _TESTS.rglob("*.py") if "data" not in path.relative_to(_TESTS).parts]
    assert [found for path in files if path.name not in _READS_TIME for found in _complaints(path)] == []


@pytest.mark.parametrize(
    "code",
    [
        "assert time.monotonic() - began < 5",
        "process.communicate(timeout=10)",
        "asyncio.wait_for(work(), 30)",
        "asyncio.timeout(20)",
        "settings(deadline=200)",
        "settings(suppress_health_check=[HealthCheck.function_scoped_fixture])",
    ],
)
def test_what_depends_on_it_is_found(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "_TESTS", tmp_path)
    (tmp_path / "test_it.py").write_text(f"{code}\n")
    assert len(list(_complaints(tmp_path / "test_it.py"))) == 1


def test_effort_tells_little_work_from_much_and_takes_no_notice_of_waiting() -> None:
    """In a process of its own: in this one, threads that other tests have left may be at work too."""
    code = """
import time
from tests.patience import effort
print(effort(lambda: time.sleep(0.3)), effort(lambda: sum(number * number for number in range(5_000_000))))
"""
    ran = subprocess.run([sys.executable, "-c", code], cwd=_TESTS.parent, capture_output=True, text=True, check=True)
    waited, worked = map(float, ran.stdout.split())
    assert waited < 5 < worked


def test_waiting_ends_when_it_has_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter([False, False, True])
    wait_until(lambda: next(answers))
    assert next(answers, None) is None
    monkeypatch.setattr("tests.patience.HANG", 0.05)
    with pytest.raises(AssertionError, match="the end did not happen"):
        wait_until(lambda: False, "the end")
    assert HANG >= 600
