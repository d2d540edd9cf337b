"""Training samples from recorded steps."""

from gametape.core.step import Step
from gametape.core.token_segments import split_segments


def turn(number: int, prompt: list[int], completion: list[int], *, copied: bool = False, **ours: object) -> Step:
    ours = {"loss_mask": [1] * len(completion), "policy_versions": [number] * len(completion), **ours}
    metrics = {"prompt_token_ids": prompt, "completion_token_ids": completion, "logprobs": [-0.5] * len(completion)}
    return Step.model_validate(
        {
            "step_id": number,
            "source": "agent",
            "message": "",
            "metrics": metrics,
            "extra": {"gametape": ours},
            "is_copied_context": copied,
        }
    )


def said(number: int, **ours: object) -> Step:
    return Step.model_validate(
        {"step_id": number, "source": "user", "message": "", "extra": {"gametape": ours} if ours else None}
    )


def test_a_growing_conversation_is_one_segment_with_only_choices_in_the_mask():
    found = split_segments([said(1), turn(2, [1, 2], [3, 4]), turn(3, [1, 2, 3, 4, 5], [6])])
    assert len(found) == 1
    assert found[0].ids == [1, 2, 3, 4, 5, 6]
    assert found[0].mask == [0, 0, 1, 1, 0, 1]
    assert found[0].logprobs == [0, 0, -0.5, -0.5, 0, -0.5]
    assert found[0].policy_versions == [-1, -1, 2, 2, -1, 3]
    assert found[0].steps == [0, 0, 2, 2, 0, 3]


def test_compaction_begins_a_segment_and_no_choice_is_in_two():
    found = split_segments(
        [turn(1, [1], [2]), said(2, compacted=True), turn(3, [1, 7], [8]), turn(4, [1, 7, 8, 9], [10])]
    )
    assert [segment.ids for segment in found] == [[1, 2], [1, 7, 8, 9, 10]]
    assert [segment.mask for segment in found] == [[0, 1], [0, 0, 1, 0, 1]]


def test_after_going_back_the_shared_past_is_read_and_not_trained_again():
    steps = [turn(1, [1], [2]), turn(2, [1, 2, 3], [4]), said(3, compacted=True, rolled_back_to=1)]
    found = split_segments([*steps, turn(4, [1, 2, 3], [5])])
    assert [segment.ids for segment in found] == [[1, 2, 3, 4], [1, 2, 3, 5]]
    assert [segment.mask for segment in found] == [[0, 1, 0, 1], [0, 0, 0, 1]]


def test_copied_turns_are_context_only():
    found = split_segments([turn(1, [1], [2], copied=True), turn(2, [1, 2, 3], [4])])
    assert [segment.mask for segment in found] == [[0, 0, 0, 1]]


def test_a_prompt_that_does_not_continue_never_joins_a_segment():
    found = split_segments([turn(1, [1], [2]), turn(2, [9], [4])])
    assert [segment.ids for segment in found] == [[1, 2], [9, 4]]


def test_turns_without_ids_or_choices_give_nothing():
    assert split_segments([said(1), turn(2, [1], [2], loss_mask=[0])]) == []
