"""Code that does not come back costs a verdict little time: a policy that learns writes much of it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from gametape.record.source_tree import SourceTree
from gametape.tasks.loader import load_task
from gametape.verify.fresh.bundles import FreshCall
from gametape.verify.fresh.judge import FreshJudge, FreshResult
from gametape.verify.verifier import Verifier

TASK = Path(__file__).parents[2] / "examples" / "tasks" / "durations"


def test_what_hangs_in_every_test_is_asked_nothing_else(
    tmp_path: Path, prepared_home: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def ask(self: FreshJudge, sources: SourceTree, calls: Sequence[FreshCall], has_hung: bool = False) -> FreshResult:
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
