"""Objects that a test compares are asked for their fields: what the code says of its own answers decides nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from gametape.record.source_tree import SourceTree
from gametape.verify.fresh.judge import CALLS, FreshJudge
from gametape.verify.fresh.object_fields import given_fields
from gametape.verify.in_sandbox import wire_protocol as words
from gametape.verify.replay.recording import record_tests
from gametape.verify.replay.sandbox import ReplaySandboxes
from gametape.verify.runner import ZygotePool
from tests.redteam.attempts.attempt import loaded_task_of
from tests.redteam.attempts.attempts import OBJECTS

VECTORS = loaded_task_of("vectors")


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FreshJudge]:
    with ZygotePool() as zygotes, ReplaySandboxes() as sandboxes:
        recording = record_tests(VECTORS, zygotes, sandboxes, tmp_path_factory.mktemp("home"))
        with FreshJudge([*recording.transcripts.values()], VECTORS, sandboxes) as found:
            yield found


def test_fields_are_those_that_start_and_reference_have() -> None:
    assert given_fields(VECTORS) == ("x", "y")


def test_calls_ask_for_fields_and_none_of_these_compares(judge: FreshJudge) -> None:
    programs = [one.program for call in judge.draw(5) for one in call.programs if not one.guessable]
    assert len(programs) >= 6
    for program in programs:
        assert any(step.operation == words.GET for step in program.steps)
        assert not any(step.is_comparison for step in program.steps)


def test_the_reference_agrees_and_a_lying_equality_does_not(judge: FreshJudge, tmp_path: Path) -> None:
    assert VECTORS.reference is not None
    right = [judge.judge(VECTORS.reference.under(["vectors.py"]), seed=seed) for seed in (3, 4, 5)]
    assert sum(one.agreed for one in right) == sum(one.calls for one in right) >= 2 * CALLS
    lazy = next(attempt for attempt in OBJECTS if attempt.name == "replay.object-lazy")
    lazy.plant(tmp_path)
    lying = SourceTree({"vectors.py": (tmp_path / "vectors.py").read_bytes()})
    assert judge.judge(lying, seed=3).agreed == 0
