"""What a warm start learns from in worlds: a noisy expert's episode, some of its turns once more after a hint, and
worlds of made-up rules.

The expert keeps to the rules under test as seldom as the world's base rate says, and no hint ever names one of them:
hints are read by practice on rules that hold in one world only, or that are made up on the spot.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from gametape.agent.episode import Episode
from gametape.core.config import WarmStartConfig
from gametape.core.token_segments import TokenSegment, split_segments
from gametape.engines.chat_formats.protocol import ChatFormat
from gametape.tasks.worlds.experts import NoisyExpert
from gametape.tasks.worlds.memory import MemoryPair, forgetful_expert
from gametape.tasks.worlds.rules import PRACTICE_MARKINGS
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.world import World
from gametape.train.demonstrations import demonstrate, hinted_turns

_RULE_TURN_EVERY = 3
"""One in so many turns of an ordinary world is under a rule, whatever the share is in the worlds of the run: with fewer
the base rate would be learned late, with more everything else."""
_HINTED = 4
"""Turns of an ordinary world that are also trained with a hint, where hints change nothing."""


@dataclass(frozen=True)
class Lesson:
    """An expert's episode, and what of it is imitated."""

    episode: Episode
    segments: Sequence[TokenSegment]


async def world_lesson(spec: WorldSpec, chat_format: ChatFormat, warm: WarmStartConfig, rng: Random) -> Lesson:
    """In a world like this one, whose seed is that of the lesson."""
    spec = spec.model_copy(update={"split": "train"})
    if rng.random() < warm.hint_share:
        return await _practice(spec, chat_format, warm, rng)
    return await _demonstration(spec, chat_format, warm, rng)


async def _demonstration(spec: WorldSpec, chat_format: ChatFormat, warm: WarmStartConfig, rng: Random) -> Lesson:
    marked = spec.horizon // _RULE_TURN_EVERY if spec.load_bearing else 0
    spec = spec.model_copy(update={"load_bearing": marked})
    demonstration = await demonstrate(
        World(spec), NoisyExpert(warm.ordinary_rate, spec.base_rate), chat_format, spec.seed
    )
    hinted = hinted_turns(demonstration, chat_format, rng, warm.made_up_hint_share) if warm.hint_share else []
    some = rng.sample(hinted, min(_HINTED, len(hinted)))
    return Lesson(demonstration.episode, [*split_segments(demonstration.episode.steps), *some])


async def _practice(spec: WorldSpec, chat_format: ChatFormat, warm: WarmStartConfig, rng: Random) -> Lesson:
    """A world of made-up rules that the expert does not know: it breaks them, unless a hint names them."""
    marked = min(spec.horizon, 8)
    update = {"hints": "instance", "rules": PRACTICE_MARKINGS, "load_bearing": marked, "split": "all"}
    practice = World(spec.model_copy(update=update))
    demonstration = await demonstrate(practice, NoisyExpert(warm.ordinary_rate, 0.0), chat_format, spec.seed)
    hinted = hinted_turns(demonstration, chat_format, rng)
    return Lesson(demonstration.episode, [*split_segments(demonstration.episode.steps), *hinted])


async def pair_lesson(pair: MemoryPair, chat_format: ChatFormat, warm: WarmStartConfig, rng: Random) -> Lesson:
    """The writer's episode, whose note is as seldom right as the base rate says, or that of a reader of a right one."""
    spec = pair.spec
    if rng.random() < 0.5:
        expert = forgetful_expert(warm.ordinary_rate, spec.base_rate)
        demonstration = await demonstrate(pair.writer, expert, chat_format, spec.seed)
    else:
        reader = pair.reader(pair.note)
        demonstration = await demonstrate(
            reader, NoisyExpert(warm.ordinary_rate, spec.base_rate), chat_format, spec.seed
        )
    return Lesson(demonstration.episode, split_segments(demonstration.episode.steps))
