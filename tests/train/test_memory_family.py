"""A policy learns to write notes from what their readers make of them."""

import asyncio
from pathlib import Path

import pytest

from gametape.core.config import RunConfig
from gametape.core.environment import StepCredit
from gametape.core.errors import BadInput
from gametape.core.token_segments import TokenSegment
from gametape.tasks.worlds.suite import preset_worlds
from gametape.train.algorithms.rlvr import Rlvr
from gametape.train.config_file import read_config
from gametape.train.rollouts import PromptRequest, RolloutGroup, RolloutResult, RolloutSample
from gametape.train.run_directory import RunDirectory
from gametape.train.training import train

CONFIG = Path(__file__).parents[2] / "configs" / "rlvr-memory.toml"


def rollout(writer: float, reader: float, note: str = "red") -> RolloutSample:
    """Step 2 is a job of the writer, step 3 the note, step 5 a job of the reader."""
    written = TokenSegment([7, 8, 9], [0, 1, 1], [0.0, -1.0, -1.0], [-1, 0, 0], [0, 2, 3])
    read = TokenSegment([7, 9], [0, 1], [0.0, -1.0], [-1, 0], [0, 5])
    credits = (StepCredit((2,), writer), StepCredit((3,), reader), StepCredit((5,), reader, given=note))
    result = RolloutResult(writer * reader, passed=bool(writer * reader), credits=credits)
    return RolloutSample((written, read), result, turns=3, tokens_read=0, tokens_generated=3)


def test_the_turn_that_wrote_a_note_is_rewarded_for_its_use() -> None:
    """The reader fails in one of two attempts, the writer in none: only the note and the reading tell them apart."""
    group = RolloutGroup(PromptRequest(0, 0, 0), (rollout(1.0, 1.0), rollout(1.0, 0.0)))
    samples = Rlvr(RunConfig(arm="rlvr", tasks="worlds:memory")).build_batch([group]).samples
    assert [sample.token_advantages.tolist() for sample in samples] == [[0.0, 1.0], [1.0], [0.0, -1.0], [-1.0]]
    assert len({sample.rollout_key for sample in samples}) == 2


def test_a_reader_is_compared_with_readers_of_the_same_note() -> None:
    attempts = (rollout(1.0, 1.0), rollout(1.0, 0.0, "blue"), rollout(1.0, 0.0, "blue"))
    group = RolloutGroup(PromptRequest(0, 0, 0), attempts)
    samples = Rlvr(RunConfig(arm="rlvr", tasks="worlds:memory")).build_batch([group]).samples
    notes, readers = samples[::2], samples[1::2]
    expected = [[0.0, 1.0], [0.0, -0.5], [0.0, -0.5]]
    assert [sample.token_advantages.tolist() for sample in notes] == [pytest.approx(values) for values in expected]
    assert [sample.token_advantages.tolist() for sample in readers] == [[0.0], [0.0], [0.0]]


def test_a_group_is_mixed_where_only_parts_of_attempts_differ() -> None:
    group = RolloutGroup(PromptRequest(0, 0, 0), (rollout(0.0, 1.0), rollout(1.0, 0.0)))
    assert [result.reward for result in group.results] == [0.0, 0.0]
    assert group.kind == "mixed"


def test_pairs_are_for_training_alone() -> None:
    with pytest.raises(BadInput, match="pairs of episodes"):
        preset_worlds("worlds:memory", 3)


@pytest.mark.slow
def test_notes_are_learned_from_their_use(tmp_path: Path) -> None:
    config = read_config(CONFIG)
    directory = RunDirectory(tmp_path / "run")
    with directory.lock():
        directory.create(config)
        result = asyncio.run(train(config, directory, tmp_path))
    assert result["success_before"] < 0.4
    assert result["success_after"] > 0.8
