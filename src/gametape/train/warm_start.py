"""The first stage of a tiny policy: supervised, on a noisy expert's episodes and on single turns that follow a hint.

The expert keeps to the rules under test as seldom as their worlds' base rate says, and no hint ever names one of them:
hints are read by practice on rules that hold in one world only, or that are made up on the spot.
"""

import asyncio
from collections.abc import Callable
from random import Random

from gametape.core.config import OptimConfig, RunConfig, WarmConfig
from gametape.core.segments import Segment, segments
from gametape.engines.dialect import Dialect
from gametape.tasks.worlds.experts import Noisy
from gametape.tasks.worlds.rules import PRACTICE
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.world import World
from gametape.train.batch import Batch, imitated
from gametape.train.demonstrations import demonstrate, hinted_turns
from gametape.train.learner import Learner, Update
from gametape.train.policy import Policy
from gametape.train.seeds import seed_for

_ONE_IN = 3
"""Of the turns of an ordinary world, so many turn on a rule, whatever it is in the worlds of the run: with fewer the
base rate would be learned late, with more the rest."""
_HINTED = 4
"""Turns of an ordinary world, where hints change nothing, that are shown with one: no less than the shortest has."""
Told = Callable[[int, int, Update], None]


async def warm_start(policy: Policy, specs: tuple[WorldSpec, ...], config: RunConfig, told: Told) -> None:
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
        told(number + 1, total, learner.update(batch, number, version=0, spent=number / total))
        await asyncio.sleep(0)  # nothing else here waits, and Ctrl-C is only heard where something does


async def _batch(policy: Policy, specs: tuple[WorldSpec, ...], config: RunConfig, number: int) -> Batch:
    warm = config.warm
    found: list[list[Segment]] = []
    for at in range(number * warm.batch, (number + 1) * warm.batch):
        seed = seed_for(config.seed, "warm start", at)
        rng = Random(seed)
        spec = rng.choice(specs).model_copy(update={"seed": seed, "split": "train"})
        if rng.random() < warm.hint_share:
            found.append(await _practice(spec, policy.dialect, warm, rng))
        else:
            found.append(await _shown(spec, policy.dialect, warm, rng))
    return imitated(found)


async def _shown(spec: WorldSpec, dialect: Dialect, warm: WarmConfig, rng: Random) -> list[Segment]:
    marked = spec.horizon // _ONE_IN if spec.load_bearing else 0
    spec = spec.model_copy(update={"load_bearing": marked})
    shown = await demonstrate(World(spec), Noisy(warm.ordinary_rate, spec.base_rate), dialect, spec.seed)
    hinted = hinted_turns(shown, dialect, rng, warm.made_up) if warm.hint_share else []
    return [*segments(shown.played.steps), *rng.sample(hinted, min(_HINTED, len(hinted)))]


async def _practice(spec: WorldSpec, dialect: Dialect, warm: WarmConfig, rng: Random) -> list[Segment]:
    """A world of made-up rules that nobody could know: they are broken, unless a hint says otherwise."""
    marked = min(spec.horizon, 8)
    update = {"hints": "instance", "rules": PRACTICE, "load_bearing": marked, "split": "all"}
    practice = World(spec.model_copy(update=update))
    shown = await demonstrate(practice, Noisy(warm.ordinary_rate, 0.0), dialect, spec.seed)
    return [*segments(shown.played.steps), *hinted_turns(shown, dialect, rng)]
