"""Records that earlier versions of gametape wrote can still be read, replayed and trained on."""

import json
from pathlib import Path

import pytest

from gametape.agent.recorded_steps import recorded_answers, usage_from_steps
from gametape.agent.replay import active_steps, checkpoint_at
from gametape.core.token_segments import split_segments
from gametape.core.trajectory import Trajectory

GOLDEN = Path(__file__).parents[1] / "core/golden/own"


@pytest.mark.parametrize("name", ["solve", "tokens"])
def test_an_earlier_record_comes_back_as_it_was(name: str) -> None:
    document = json.loads((GOLDEN / f"{name}.json").read_text())
    assert Trajectory.model_validate(document).model_dump() == document


def test_an_earlier_attempt_has_its_checkpoint_state_and_events() -> None:
    trajectory = Trajectory.model_validate_json((GOLDEN / "solve.json").read_bytes())
    steps = active_steps(trajectory.steps)
    checkpoint, state = checkpoint_at(steps)
    assert checkpoint == trajectory.steps[-1].gametape_extra.checkpoint
    assert (state.turn, state.directory) == (4, "/workspace")
    events = [event["kind"] for step in steps for event in step.gametape_extra.events or []]
    assert events == ["malformed_call", "unknown_tool"]
    assert [answer.failed for step in steps for answer in recorded_answers(step)[0]] == [False, True, False]
    usage = usage_from_steps(steps)
    assert (usage.turns, usage.calls["shell"]) == (4, 1)
    assert trajectory.outcome == "passed"


def test_an_earlier_rollout_still_gives_its_tokens_to_training() -> None:
    trajectory = Trajectory.model_validate_json((GOLDEN / "tokens.json").read_bytes())
    (segment,) = split_segments(trajectory.steps)
    sampled = [step.tokens() for step in trajectory.steps if step.source == "agent"]
    assert sum(segment.mask) == sum(sum(turn.loss_mask or []) for turn in sampled if turn)
    assert (trajectory.tokens_exact(), trajectory.mask_ok()) == (True, True)
