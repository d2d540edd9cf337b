"""Each control takes away exactly what it is named after."""

import asyncio
from typing import Any

import pytest

from gametape.agent.playing import Played
from gametape.core.config import TTFConfig
from gametape.core.hint import Gates, Hint, HintVersions
from gametape.core.segments import segments
from gametape.engines.dialects.terse import TerseDialect
from gametape.engines.tokenizing.trained import TrainedTokenizer
from gametape.engines.tokenizing.words import words_document
from gametape.tasks.worlds.experts import perfect
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.tools import signatures
from gametape.tasks.worlds.vocabulary import words
from gametape.tasks.worlds.world import World
from gametape.train.aims import Aim
from gametape.train.controls import Controls
from gametape.train.demonstrations import demonstrate

TERSE = TerseDialect(TrainedTokenizer(words_document(words())), signatures())


@pytest.fixture(scope="module")
def played() -> Played:
    return asyncio.run(demonstrate(World(WorldSpec(seed=1, horizon=6)), perfect, TERSE)).played


def hint(kind: str = "a", step: int = 4) -> Hint:
    return Hint(
        trajectory_id="t",
        step=step,
        span=(0, 4),
        source="tool_error",
        type=kind,
        text=f"rule : {kind}",
        hint_ids=[],
        gates=Gates(),
        used=True,
        evidence="",
        noticed=step,
        versions=HintVersions(policy=0, teacher=0),
    )


def spoilt(control: Any, played: Played, share: float = 1.0) -> list[Hint]:
    controls = Controls(TTFConfig(control=control, spoiled=share), seed=3)
    return [controls.spoilt(hint(kind, step), played) for kind in ("a", "b", "c") for step in (3, 4, 5)]


def test_without_a_control_hints_are_as_they_were(played: Played) -> None:
    assert spoilt("none", played) == [hint(kind, step) for kind in ("a", "b", "c") for step in (3, 4, 5)]


def test_a_shuffled_hint_is_that_of_another_type(played: Played) -> None:
    found = spoilt("shuffled", played)
    assert all(one.text != f"rule : {one.type}" for one in found)
    assert {one.text for one in found[3:]} <= {"rule : a", "rule : b"}
    assert [one.step for one in found] == [3, 4, 5] * 3


def test_a_neutral_hint_is_the_same_everywhere(played: Played) -> None:
    assert len({one.text for one in spoilt("neutral", played)}) == 1


def test_elsewhere_is_another_turn_with_the_same_hint(played: Played) -> None:
    for one, step in zip(spoilt("elsewhere", played), [3, 4, 5] * 3, strict=True):
        assert one.step != step
        assert one.text == f"rule : {one.type}"
        turn = next(turn for turn in played.steps if turn.step_id == one.step)
        tokens = turn.tokens()
        assert tokens is not None
        assert one.span == (0, len(tokens.completion_ids))


def test_a_share_of_them_is_left_alone(played: Played) -> None:
    kept = [one.text.endswith(one.type) for one in spoilt("neutral", played, share=0.5)]
    assert 0 < sum(kept) < len(kept)


def test_what_is_learned_in_place_of_a_turn_stands_where_the_turn_stood(played: Played) -> None:
    (own,) = segments(played.steps)
    places = [at for at, step in enumerate(own.steps) if step == 4]
    aim = Aim(places[0], len(places), places[0], (), step=4, learn="penalty")
    penalty = aim.instead(own)
    assert penalty.ids == own.ids[: places[-1] + 1]
    assert [at for at, bit in enumerate(penalty.mask) if bit] == places
    other = Aim(places[0], len(places), places[0], (), step=4, learn="resample", resampled=(7, 8)).instead(own)
    assert other.ids == [*own.ids[: places[0]], 7, 8]
    assert other.mask == [0] * places[0] + [1, 1]
