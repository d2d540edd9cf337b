import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from pydantic import ValidationError

from gametape.core.step import Step
from gametape.core.tokens import TurnTokens
from gametape.core.trajectory import Trajectory
from gametape.core.validation import problems_from

from .documents import GOLDEN, small, text, trajectories, turn


def problems(document: Any) -> dict[str, str]:
    with pytest.raises(ValidationError) as caught:
        Trajectory.model_validate(document)
    return dict(problems_from(caught.value, document))


def with_turns(*turns: dict[str, Any]) -> Trajectory:
    return Trajectory.model_validate(small() | {"steps": list(turns)})


@settings(deadline=None, max_examples=60)
@given(trajectories())
def test_a_document_survives_a_round_trip_unchanged(document: dict[str, Any]) -> None:
    assert text(Trajectory.model_validate(document).model_dump()) == text(document)


@settings(deadline=None, max_examples=60)
@given(trajectories())
def test_an_object_survives_json_and_pickle(document: dict[str, Any]) -> None:
    trajectory = Trajectory.model_validate(document)
    again = Trajectory.model_validate(json.loads(json.dumps(trajectory.model_dump())))
    pickled = pickle.loads(pickle.dumps(trajectory))
    assert again == trajectory == pickled
    assert text(pickled.model_dump()) == text(document)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_files_survive_a_round_trip_unchanged(path: Path) -> None:
    document = json.loads(path.read_text())
    assert text(Trajectory.model_validate(document).model_dump()) == text(document)


def test_objects_built_here_write_only_what_was_given() -> None:
    step = Step(step_id=1, source="user", message="go", timestamp=None)
    assert text(step.model_dump()) == text({"step_id": 1, "source": "user", "message": "go", "timestamp": None})


def test_equality_looks_at_values_known_and_unknown() -> None:
    document = small()["steps"][0]
    assert Step.model_validate(document) == Step.model_validate(dict(reversed(document.items())))
    assert Step.model_validate(document) != Step.model_validate(document | {"message": "other"})
    assert Step.model_validate(document) != Step.model_validate(document | {"unknown": 1})


def put(path: str, value: Any) -> dict[str, Any]:
    """A small document with one place changed; the path is written in Python."""
    document = small()
    exec(f"document{path} = value", {"document": document, "value": value})
    return document


FAULTS = [
    ("['schema_version']", "ATIF-v1.9", "schema_version", "'ATIF-v1.8'"),
    ("['schema_version']", "1.7", "schema_version", "'ATIF-v1.0'"),
    ("['agent']", "me", "agent", "Agent"),
    ("['agent']", {"name": "a"}, "agent.version", "required"),
    ("['steps'][0]['step_id']", "1", "steps[0].step_id", "integer"),
    ("['steps'][0]['step_id']", True, "steps[0].step_id", "integer"),
    ("['steps'][0]['step_id']", 1.0, "steps[0].step_id", "integer"),
    ("['steps'][1]['step_id']", 1, "steps[1].step_id", "2: steps are numbered"),
    ("['steps'][1]['step_id']", 3, "steps[1].step_id", "2: steps are numbered"),
    ("['steps'][0]['source']", "robot", "steps[0].source", "'agent'"),
    ("['steps'][0]['message']", None, "steps[0].message", "a string or a list of content parts"),
    ("['steps'][0]['message']", [{"type": "text"}], "steps[0].message[0].text", "a string"),
    (
        "['steps'][0]['message']",
        [{"type": "image", "text": "x"}],
        "steps[0].message[0].source",
        "a source, and no text",
    ),
    (
        "['steps'][0]['message']",
        [{"type": "audio", "source": {"media_type": "image/png", "path": "x"}}],
        "steps[0].message[0].source.media_type",
        "audio/",
    ),
    ("['steps'][0]['message']", [{"type": "sound"}], "steps[0].message[0].type", "'image'"),
    ("['steps'][0]['timestamp']", "yesterday", "steps[0].timestamp", "ISO 8601"),
    ("['steps'][0]['metrics']", {}, "steps[0].metrics", "only steps of the agent"),
    ("['steps'][0]['tool_calls']", [], "steps[0].tool_calls", "only steps of the agent"),
    ("['steps'][0]['reasoning_content']", "", "steps[0].reasoning_content", "only steps of the agent"),
    ("['steps'][1]['llm_call_count']", 0, "steps[1].metrics", "no model was called"),
    ("['steps'][1]['tool_calls'][0]['arguments']", "{}", "steps[1].tool_calls[0].arguments", "dictionary"),
    (
        "['steps'][1]['observation']['results'][0]['source_call_id']",
        "d",
        "steps[1].observation.results[0].source_call_id",
        "the id of a tool call of this step",
    ),
    (
        "['steps'][1]['observation']['results'][0]['subagent_trajectory_ref']",
        [{"session_id": "s"}],
        "steps[1].observation.results[0].subagent_trajectory_ref[0]",
        "a trajectory_id or a trajectory_path",
    ),
    (
        "['steps'][1]['observation']['results'][0]['subagent_trajectory_ref']",
        [{"trajectory_id": "nowhere"}],
        "steps[1].observation.results[0].subagent_trajectory_ref[0].trajectory_id",
        "one of subagent_trajectories",
    ),
    ("['steps'][1]['metrics']['logprobs'][1]", "x", "steps[1].metrics.logprobs[1]", "finite number"),
    ("['steps'][1]['metrics']['logprobs'][1]", 0.1, "steps[1].metrics.logprobs[1]", "at most 0"),
    ("['steps'][1]['metrics']['logprobs'][1]", float("-inf"), "steps[1].metrics.logprobs[1]", "finite"),
    ("['steps'][1]['metrics']['logprobs'][1]", -(10**400), "steps[1].metrics.logprobs[1]", "finite"),
    ("['steps'][1]['metrics']['logprobs']", [-1], "steps[1].metrics.logprobs", "2 entries"),
    ("['steps'][1]['metrics']['cost_usd']", True, "steps[1].metrics.cost_usd", "a finite number"),
    (
        "['steps'][1]['metrics']['completion_token_ids'][0]",
        -1,
        "steps[1].metrics.completion_token_ids[0]",
        "equal to 0",
    ),
    (
        "['steps'][1]['metrics']['completion_token_ids'][0]",
        2**31,
        "steps[1].metrics.completion_token_ids[0]",
        "less",
    ),
    (
        "['steps'][1]['metrics']['completion_token_ids']",
        None,
        "steps[1].extra.gametape.loss_mask",
        "beside it",
    ),
    ("['steps'][1]['extra']['gametape']['loss_mask']", [1], "steps[1].extra.gametape.loss_mask", "2 entries"),
    (
        "['steps'][1]['extra']['gametape']['loss_mask']",
        [1, 2],
        "steps[1].extra.gametape.loss_mask[1]",
        "equal to 1",
    ),
    (
        "['steps'][1]['extra']['gametape']['loss_mask']",
        [1, True],
        "steps[1].extra.gametape.loss_mask[1]",
        "integer",
    ),
    (
        "['steps'][1]['extra']['gametape']['policy_versions']",
        [],
        "steps[1].extra.gametape.policy_versions",
        "2 ent",
    ),
    ("['subagent_trajectories']", [small()], "subagent_trajectories[0].trajectory_id", "an id of its own"),
    (
        "['subagent_trajectories']",
        [small() | {"trajectory_id": "s", "steps": []}],
        "subagent_trajectories[0].steps",
        "at least one step",
    ),
    (
        "['subagent_trajectories']",
        [small() | {"trajectory_id": "s"}] * 2,
        "subagent_trajectories[1].trajectory_id",
        "an id of its own",
    ),
    (
        "['subagent_trajectories']",
        [put("['steps'][1]['step_id']", 7) | {"trajectory_id": "s"}],
        "subagent_trajectories[0].steps[1].step_id",
        "2: steps are numbered",
    ),
]


@pytest.mark.parametrize(
    ("where", "value", "path", "expected"), FAULTS, ids=[f"{f[2]}-{i}" for i, f in enumerate(FAULTS)]
)
def test_a_fault_is_named_by_its_place(where: str, value: Any, path: str, expected: str) -> None:
    Trajectory.model_validate(small())
    assert expected in problems(put(where, value))[path]


def test_before_1_7_a_session_alone_names_a_subagent() -> None:
    place = "['steps'][1]['observation']['results'][0]['subagent_trajectory_ref']"
    Trajectory.model_validate(put(place, [{"session_id": "s"}]) | {"schema_version": "ATIF-v1.6"})
    assert problems(put(place, [{"extra": {}}]) | {"schema_version": "ATIF-v1.6"})


def test_only_the_first_hundred_problems_are_listed() -> None:
    assert len(problems(put("['steps'][1]['metrics']['logprobs']", ["x"] * 1000))) == 100


def test_tokens_are_read_where_atif_and_gametape_keep_them() -> None:
    tokens = Trajectory.model_validate(small()).steps[1].tokens()
    assert tokens == TurnTokens(
        prompt_ids=[1, 2],
        completion_ids=[3, 4],
        logprobs=[-0.5, -1.0],
        loss_mask=[1, 1],
        policy_versions=[0, 0],
    )
    assert Trajectory.model_validate(small()).steps[0].tokens() is None
    assert with_turns(turn(1, None, [1])).steps[0].tokens() is None


def test_tokens_can_be_put_on_a_step_and_the_rest_of_it_stays() -> None:
    tokens = TurnTokens(prompt_ids=[9], completion_ids=[8], logprobs=[-1], loss_mask=[0], policy_versions=[5])
    document = small()["steps"][1]
    document["metrics"]["cost_usd"] = 1
    document["extra"]["theirs"] = 2
    document["extra"]["gametape"]["later"] = 3
    step = Step.model_validate(document).with_tokens(tokens)
    assert step.tokens() == tokens
    changed = step.model_dump()
    assert (changed["metrics"]["cost_usd"], changed["extra"]["theirs"]) == (1, 2)
    assert changed["extra"]["gametape"]["later"] == 3
    assert changed["tool_calls"] == document["tool_calls"]


def test_tokens_without_a_mask_leave_no_empty_corner() -> None:
    step = Step(step_id=1, source="agent", message="").with_tokens(TurnTokens(prompt_ids=[1], completion_ids=[2]))
    assert "extra" not in step.model_dump()
    assert step.tokens() == TurnTokens(prompt_ids=[1], completion_ids=[2])


def test_tokens_are_exact_across_turns_and_subagents() -> None:
    exact = [turn(1, [1], [2]), turn(2, [1, 2, 3], [4])]
    broken = [turn(1, [1], [2]), turn(2, [1, 3, 2], [4])]
    assert with_turns(*exact).tokens_exact() is True
    assert with_turns(*broken).tokens_exact() is False
    assert with_turns({"step_id": 1, "source": "agent", "message": ""}).tokens_exact() is None
    nested = small() | {
        "steps": exact,
        "subagent_trajectories": [small() | {"trajectory_id": "s", "steps": broken}],
    }
    assert Trajectory.model_validate(nested).tokens_exact() is False


def test_compaction_starts_token_ids_afresh() -> None:
    mark = {
        "step_id": 2,
        "source": "system",
        "message": "summary",
        "extra": {"gametape": {"compacted": True}},
    }
    assert with_turns(turn(1, [1], [2]), mark, turn(3, [7], [8]), turn(4, [7, 8], [9])).tokens_exact() is True
    assert with_turns(turn(1, [1], [2]), mark, turn(3, [7], [8]), turn(4, [7], [9])).tokens_exact() is False


def test_the_mask_covers_every_sampled_turn_or_is_not_ok() -> None:
    assert with_turns(turn(1, [1], [2]), turn(2, [1, 2], [3])).mask_ok() is None
    assert with_turns(turn(1, [1], [2], loss_mask=[1]), turn(2, [1, 2], [3], loss_mask=[0])).mask_ok() is True
    assert with_turns(turn(1, [1], [2], loss_mask=[1]), turn(2, [1, 2], [3])).mask_ok() is False


def test_a_copied_turn_is_not_trained_again() -> None:
    copied = {"is_copied_context": True}
    own = turn(2, [1, 2], [3], loss_mask=[1])
    assert with_turns(turn(1, [1], [2]) | copied, own).mask_ok() is True
    assert with_turns(turn(1, [1], [2], loss_mask=[0]) | copied, own).mask_ok() is True
    assert with_turns(turn(1, [1], [2], loss_mask=[1]) | copied, own).mask_ok() is False


def test_ours_is_read_from_the_root_extra_and_theirs_is_left_alone() -> None:
    ours = Trajectory.model_validate(small() | {"extra": {"attempt_id": "a", "outcome": "limit", "goal_id": "g"}})
    assert (ours.attempt_id, ours.outcome, ours.goal_id, ours.turns) == ("a", "limit", "g", 1)
    theirs = Trajectory.model_validate(small() | {"extra": {"outcome": {"theirs": 1}}})
    assert (theirs.attempt_id, theirs.outcome) == (None, None)
