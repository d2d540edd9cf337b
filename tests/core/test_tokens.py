import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from gametape.core.tokens import ContextTokens, TurnTokens, is_append_only

IDS = st.lists(st.integers(0, 9), max_size=4)


@pytest.mark.parametrize("column", ["logprobs", "loss_mask", "policy_versions"])
def test_every_column_has_one_entry_per_completion_token(column: str) -> None:
    TurnTokens(prompt_ids=[1], completion_ids=[2, 3], **{column: [0, 0]})
    with pytest.raises(ValidationError, match="one per completion token, not 1"):
        TurnTokens(prompt_ids=[1], completion_ids=[2, 3], **{column: [0]})


@pytest.mark.parametrize("bad", [0.5, float("nan"), float("-inf"), True, "0"])
def test_a_log_probability_is_finite_and_at_most_zero(bad: object) -> None:
    with pytest.raises(ValidationError, match="at most 0"):
        TurnTokens(prompt_ids=[], completion_ids=[1], logprobs=[bad])


@given(st.lists(st.tuples(IDS, IDS), min_size=1))
def test_a_conversation_that_only_appends_is_exact(turns: list[tuple[list[int], list[int]]]) -> None:
    context: list[int] = []
    readings = []
    for heard, said in turns:
        readings.append(ContextTokens(context + heard, said, fresh=False))
        context = context + heard + said
    assert is_append_only(readings) is True


@given(IDS, st.lists(st.integers(0, 9), min_size=1), st.data())
def test_one_changed_token_is_noticed(prompt: list[int], said: list[int], data: st.DataObject) -> None:
    after = prompt + said
    at = data.draw(st.integers(0, len(after) - 1))
    changed = [*after[:at], after[at] + 1, *after[at + 1 :]]
    first = ContextTokens(prompt, said, fresh=False)
    assert is_append_only([first, ContextTokens(changed, [], fresh=False)]) is False
    assert is_append_only([first, ContextTokens(after[:-1], [], fresh=False)]) is False
    assert is_append_only([first, ContextTokens(changed, [], fresh=True)]) is True


def test_exactness_is_unknown_without_ids_and_not_shown_with_half_of_them() -> None:
    assert is_append_only([ContextTokens(None, None, fresh=False)]) is None
    assert is_append_only([ContextTokens([1], None, fresh=False)]) is False
    assert is_append_only([ContextTokens(None, [1], fresh=False)]) is False
    assert is_append_only([ContextTokens([1], [2], fresh=False), ContextTokens(None, None, fresh=False)]) is True
