"""The first stage of a tiny policy: supervised, on a noisy expert's episodes and on single turns that follow a hint.

The expert keeps to the rules under test as seldom as their worlds' base rate says, and no hint ever names one of them:
hints are read by practice on rules that hold in one world only, or that are made up on the spot.
"""

import asyncio
from collections.abc import Callable
from random import Random

from gametape.core.config import OptimConfig, RunConfig, WarmStartConfig
from gametape.core.seeds import seed_for
from gametape.core.token_segments import TokenSegment, split_segments
from gametape.engines.chat_formats.protocol import ChatFormat
from gametape.tasks.worlds.experts import NoisyExpert
from gametape.tasks.worlds.rules import PRACTICE_MARKINGS
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.world import World
from gametape.train.batch import TrainBatch, demonstration_batch
from gametape.train.demonstrations import demonstrate, hinted_turns
from gametape.train.learner import Learner, UpdateMetrics
from gametape.train.policy import TrainablePolicy

_RULE_TURN_EVERY = 3
"""Of the turns of an ordinary world, so many turn on a rule, whatever it is in the worlds of the run: with fewer the
base rate would be learned late, with more the rest."""
_HINTED = 4
"""Turns of an ordinary world, where hints change nothing, that are shown with one: no less than the shortest has."""
WarmStartCallback = Callable[[int, int, UpdateMetrics], None]


async def warm_start(
    policy: TrainablePolicy, specs: tuple[WorldSpec, ...], config: RunConfig, on_update: WarmStartCallback
) -> None:
    """Teach a new policy, in place. `told` hears after each update how many there are and what it did."""
    warm = config.warm
    updates = -(-warm.episodes // warm.batch)
    optim = OptimConfig(
        name=warm.optimizer, learning_rate=warm.learning_rate, schedule="cosine", warmup=min(20, updates // 10)
    )
    learner = Learner(policy, config.model_copy(update={"optim": optim}))
    total = updates * warm.epochs
    for number in range(total):
        batch = await _batch(policy, specs, config, number % updates)
        on_update(number + 1, total, learner.update(batch, number, version=0, spent=number / total))
        await asyncio.sleep(0)  # nothing else here waits, and Ctrl-C is only heard where something does


async def _batch(policy: TrainablePolicy, specs: tuple[WorldSpec, ...], config: RunConfig, number: int) -> TrainBatch:
    warm = config.warm
    found: list[list[TokenSegment]] = []
    for at in range(number * warm.batch, (number + 1) * warm.batch):
        seed = seed_for(config.seed, "warm start", at)
        rng = Random(seed)
        spec = rng.choice(specs).model_copy(update={"seed": seed, "split": "train"})
        if rng.random() < warm.hint_share:
            found.append(await _practice_segments(spec, policy.dialect, warm, rng))
        else:
            found.append(await _demonstration_segments(spec, policy.dialect, warm, rng))
    return demonstration_batch(found)


async def _demonstration_segments(
    spec: WorldSpec, dialect: ChatFormat, warm: WarmStartConfig, rng: Random
) -> list[TokenSegment]:
    marked = spec.horizon // _RULE_TURN_EVERY if spec.load_bearing else 0
    spec = spec.model_copy(update={"load_bearing": marked})
    shown = await demonstrate(World(spec), NoisyExpert(warm.ordinary_rate, spec.base_rate), dialect, spec.seed)
    hinted = hinted_turns(shown, dialect, rng, warm.made_up_hint_share) if warm.hint_share else []
    return [*split_segments(shown.episode.steps), *rng.sample(hinted, min(_HINTED, len(hinted)))]


async def _practice_segments(
    spec: WorldSpec, dialect: ChatFormat, warm: WarmStartConfig, rng: Random
) -> list[TokenSegment]:
    """A world of made-up rules that nobody could know: they are broken, unless a hint says otherwise."""
    marked = min(spec.horizon, 8)
    update = {"hints": "instance", "rules": PRACTICE_MARKINGS, "load_bearing": marked, "split": "all"}
    practice = World(spec.model_copy(update=update))
    shown = await demonstrate(practice, NoisyExpert(warm.ordinary_rate, 0.0), dialect, spec.seed)
    return [*split_segments(shown.episode.steps), *hinted_turns(shown, dialect, rng)]
