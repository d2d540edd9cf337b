"""Right solutions that differ from the reference in style agree with it on fresh calls."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from gametape.record.source_tree import SourceTree
from gametape.verify.fresh.judge import FreshJudge, FreshResult
from gametape.verify.replay.recording import record_tests
from gametape.verify.replay.sandbox import ReplaySandboxes
from gametape.verify.runner import ZygotePool
from gametape.verify.submission import read_submission
from tests.verify.honest.corpus import Solution, honest_task, solutions

Ask = Callable[[str, SourceTree], FreshResult]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    judges: dict[str, FreshJudge] = {}
    with ExitStack() as stack:
        zygotes = stack.enter_context(ZygotePool())
        sandboxes = stack.enter_context(ReplaySandboxes())

        def judge(task: str, sources: SourceTree) -> FreshResult:
            if task not in judges:
                loaded_task = honest_task(task)
                recording = record_tests(loaded_task, zygotes, sandboxes, tmp_path_factory.mktemp("home"))
                new = FreshJudge([*recording.transcripts.values()], loaded_task, sandboxes)
                judges[task] = stack.enter_context(new)
            return judges[task].judge(sources)

        yield judge


@pytest.mark.slow
@pytest.mark.parametrize("solution", [one for one in solutions() if one.kind == "right"], ids=lambda one: one.id)
def test_a_right_solution_agrees(solution: Solution, ask: Ask, tmp_path: Path) -> None:
    solution.write_to(tmp_path)
    sources = read_submission(honest_task(solution.task), tmp_path).sources

    result = ask(solution.task, sources)

    assert result.agreed >= 0.95 * result.calls, result.differences
