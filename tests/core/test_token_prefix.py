"""Prompts that share the ids of their conversation."""

import pickle

import pytest
from pydantic import BaseModel, ValidationError

from gametape.core.token_prefix import PromptIds, TokenPrefix


def test_a_longer_prompt_shares_the_ids_of_a_shorter_one() -> None:
    first = TokenPrefix([1, 2, 3])
    second = first.extended([4, 5])
    assert second._ids is first._ids
    assert (first, second) == ([1, 2, 3], [1, 2, 3, 4, 5])
    assert second.starts_with(first)
    assert second.starts_with([1, 2])
    assert not first.starts_with(second)
    assert first.extended([4])._ids is first._ids, "it is there already"


def test_two_ways_on_from_one_prompt_do_not_meet() -> None:
    first = TokenPrefix([1, 2])
    one, other = first.extended([3, 4]), first.extended([3, 5])
    assert (first, one, other) == ([1, 2], [1, 2, 3, 4], [1, 2, 3, 5])
    assert not other.starts_with(one)


def test_it_reads_like_a_list() -> None:
    ids = TokenPrefix([1, 2, 3, 4]).extended([5])
    short = TokenPrefix([1, 2, 3])
    short.extended([9])
    for slices in (slice(1, 3), slice(-2, None), slice(None, None, -1), slice(3, 0, -2)):
        assert ids[slices] == [1, 2, 3, 4, 5][slices]
    assert (short[-1], list(short), list(reversed(short)), short + [7], len(short)) == (  # noqa: RUF005
        3,
        [1, 2, 3],
        [3, 2, 1],
        [1, 2, 3, 7],
        3,
    )
    assert short != [1, 2, 3, 9]
    with pytest.raises(IndexError):
        short[3]


def test_a_pickle_has_only_its_own_ids() -> None:
    short = TokenPrefix([1, 2])
    short.extended([3])
    assert len(pickle.loads(pickle.dumps(short))._ids) == 2


def test_a_field_takes_both_forms_and_writes_a_list() -> None:
    class Turn(BaseModel):
        prompt: PromptIds

    assert Turn(prompt=TokenPrefix([1, 2])).model_dump() == {"prompt": [1, 2]}
    assert Turn(prompt=[1, 2]) == Turn(prompt=TokenPrefix([1, 2]))
    for bad in ([1, "2"], [-1], [True], "12", None):
        with pytest.raises(ValidationError):
            Turn(prompt=bad)
