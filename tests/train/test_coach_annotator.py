"""Each control takes away exactly what it is named after."""

import asyncio
from typing import Any

import pytest

from gametape.agent.episode import Episode
from gametape.core.config import TTFConfig
from gametape.core.hint import Hint, HintGates, HintVersions
from gametape.core.token_segments import split_segments
from gametape.engines.chat_formats.terse import TerseChatFormat
from gametape.engines.tokenizers.trained import TrainedTokenizer
from gametape.engines.tokenizers.words import word_tokenizer_json
from gametape.tasks.worlds.experts import perfect_expert
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.tools import tool_signatures, vocabulary_words
from gametape.tasks.worlds.world import World
from gametape.train.coach_annotator import HintControls
from gametape.train.demonstrations import demonstrate
from gametape.train.rollouts import DistillTarget

TERSE = TerseChatFormat(TrainedTokenizer(word_tokenizer_json(vocabulary_words())), tool_signatures())


@pytest.fixture(scope="module")
def played() -> Episode:
    return asyncio.run(demonstrate(World(WorldSpec(seed=1, horizon=6)), perfect_expert, TERSE)).episode


def hint(kind: str = "a", step: int = 4) -> Hint:
    return Hint(
        trajectory_id="t",
        step=step,
        span=(0, 4),
        source="tool_error",
        type=kind,
        text=f"rule : {kind}",
        hint_ids=[],
        gates=HintGates(),
        used=True,
        evidence="",
        noticed=step,
        versions=HintVersions(policy=0, teacher=0),
    )


def spoilt(control: Any, played: Episode, share: float = 1.0) -> list[Hint]:
    controls = HintControls(TTFConfig(control=control, control_share=share), seed=3)
    return [controls.apply(hint(kind, step), played) for kind in ("a", "b", "c") for step in (3, 4, 5)]


def test_without_a_control_hints_are_as_they_were(played: Episode) -> None:
    assert spoilt("none", played) == [hint(kind, step) for kind in ("a", "b", "c") for step in (3, 4, 5)]


def test_a_shuffled_hint_is_that_of_another_type(played: Episode) -> None:
    found = spoilt("shuffled", played)
    assert all(one.text != f"rule : {one.type}" for one in found)
    assert {one.text for one in found[3:]} <= {"rule : a", "rule : b"}
    assert [one.step for one in found] == [3, 4, 5] * 3


def test_a_neutral_hint_is_the_same_everywhere(played: Episode) -> None:
    assert len({one.text for one in spoilt("neutral", played)}) == 1


def test_elsewhere_is_another_turn_with_the_same_hint(played: Episode) -> None:
    for one, step in zip(spoilt("elsewhere", played), [3, 4, 5] * 3, strict=True):
        assert one.step != step
        assert one.text == f"rule : {one.type}"
        turn = next(turn for turn in played.steps if turn.step_id == one.step)
        tokens = turn.tokens()
        assert tokens is not None
        assert one.span == (0, len(tokens.completion_ids))


def test_a_share_of_them_is_left_alone(played: Episode) -> None:
    kept = [one.text.endswith(one.type) for one in spoilt("neutral", played, share=0.5)]
    assert 0 < sum(kept) < len(kept)


def test_what_is_learned_in_place_of_a_turn_stands_where_the_turn_stood(played: Episode) -> None:
    (own,) = split_segments(played.steps)
    places = [at for at, step in enumerate(own.steps) if step == 4]
    aim = DistillTarget(places[0], len(places), places[0], (), step=4, learn="penalty")
    penalty = aim.replacement_segment(own)
    assert penalty.ids == own.ids[: places[-1] + 1]
    assert [at for at, bit in enumerate(penalty.mask) if bit] == places
    other = DistillTarget(
        places[0], len(places), places[0], (), step=4, learn="resample", resampled=(7, 8)
    ).replacement_segment(own)
    assert other.ids == [*own.ids[: places[0]], 7, 8]
    assert other.mask == [0] * places[0] + [1, 1]
