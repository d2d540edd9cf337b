"""Code that does not come back costs a verdict little time: a policy that learns writes much of it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gametape.record.source_tree import SourceTree
from gametape.tasks.loader import load_task
from gametape.verify import machine_load
from gametape.verify import verifier as verifier_module
from gametape.verify.fresh.bundles import FreshCall
from gametape.verify.fresh.judge import FreshJudge, FreshResult
from gametape.verify.machine_load import LoadAllowance
from gametape.verify.verifier import Verifier

TASK = Path(__file__).parents[2] / "examples" / "tasks" / "durations"


def test_what_hangs_in_every_test_is_asked_nothing_else(
    tmp_path: Path, prepared_home: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def ask(
        self: FreshJudge, sources: SourceTree, calls: Sequence[FreshCall], has_hung: bool, allowance: LoadAllowance
    ) -> FreshResult:
        asked.append(has_hung)
        return FreshResult(len(calls), 0, ())

    task = load_task(TASK)
    workspace = tmp_path / "workspace"
    task.start.write_to(workspace)
    with Verifier(task, prepared_home(tmp_path / "home")) as verifier:
        verifier.prepared()
        monkeypatch.setattr(FreshJudge, "ask", ask)
        (workspace / "durations.py").write_text(
            "def parse_duration(text):\n    count = 0\n    while True:\n        count += 1\n"
        )
        everywhere = verifier.verify(workspace, "train")
        (workspace / "durations.py").write_text("def parse_duration(text):\n    raise ValueError(text)\n")
        nowhere = verifier.verify(workspace, "train")

    assert everywhere.tests.timed_out > 0
    assert everywhere.fresh is not None
    assert (everywhere.fresh.agreed, everywhere.reward) == (0, 0.0)
    assert everywhere.fresh.calls > 0
    assert not everywhere.quarantined
    assert nowhere.tests.timed_out == 0
    assert asked == [False]


@pytest.mark.slow
def test_right_code_that_hangs_now_and_then_waits_little_for_a_busy_machine(
    tmp_path: Path, prepared_home: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every process the call after those of the tests hangs. The machine is said to be busy once all is prepared,
    and what may be waited for that is kept short here."""
    spent: list[float] = []
    spend = LoadAllowance.spend

    def count(self: LoadAllowance, seconds: float) -> None:
        spent.append(seconds)
        spend(self, seconds)

    task = load_task(TASK)
    workspace = tmp_path / "workspace"
    task.start.write_to(workspace)
    assert task.reference is not None
    right = task.reference.text("durations.py")
    asked = "\n\n_asked = []\n_right = parse_duration\n\n\ndef parse_duration(text):\n    _asked.append(1)\n"
    asked += f"    while len(_asked) > {len(task.task.tests.every) + 10}:\n        pass\n    return _right(text)\n"
    (workspace / "durations.py").write_text(right + asked)
    with Verifier(task, prepared_home(tmp_path / "home")) as verifier:
        verifier.prepared()
        monkeypatch.setattr(verifier_module, "_MOST_WAITED", 0.5)
        monkeypatch.setattr(machine_load, "slowdown", lambda: 8.0)
        monkeypatch.setattr(LoadAllowance, "spend", count)
        verdict = verifier.verify(workspace, "train")

    assert verdict.tests.timed_out + verdict.tests.passed == verdict.tests.expected
    assert len(spent) > 0
    assert sum(spent) == pytest.approx(0.5)
