"""Worlds in the agent's loop: turns are counted as the loop counts them, and any turn can be forked."""

import asyncio
from dataclasses import replace

from gametape.agent.limits import Limits
from gametape.agent.playing import finish, play, setting_for
from gametape.agent.recording import InMemory
from gametape.agent.rollout import Rollout
from gametape.core.messages import Sampling
from gametape.tasks.worlds.experts import Clumsy, perfect, script
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.world import World
from gametape.train.demonstrations import expert_model

from .test_demonstrations import TERSE


def setting_of(world, model):
    return setting_for(world, model, Sampling(), Limits())


def test_turns_without_a_call_are_counted_and_cost_no_job():
    world = World(WorldSpec(seed=1, horizon=6))
    model = expert_model(script(world, perfect), TERSE)
    garbage = TERSE.tokenizer.encode("blue blue") + list(TERSE.stop_ids)
    turns = model.engine.turns
    engine = replace(model.engine, turns=[*turns[:2], garbage, *turns[2:4], garbage, *turns[4:]])
    played = asyncio.run(play(world, setting_of(world, replace(model, engine=engine))))
    assert played.judged.passed
    assert [mark.turn for mark in played.judged.marks] == [1, 2, 4, 5, 7, 8]


def test_whoever_says_nothing_useful_is_cut_short():
    world = World(WorldSpec(seed=1, horizon=6))
    model = expert_model([], TERSE)
    engine = replace(model.engine, turns=[list(TERSE.stop_ids)] * 20)
    played = asyncio.run(play(world, setting_of(world, replace(model, engine=engine))))
    assert (played.judged.passed, played.cut_short) == (False, True)
    assert played.judged.marks == ()


def test_a_rollout_is_forked_at_the_turn_that_went_wrong():
    """From the state before its only error, another line of play succeeds; the first one is not touched."""
    world = World(WorldSpec(seed=2, horizon=8, load_bearing=1))
    right = script(world, perfect)
    wrong_turn = next(n for n, act in enumerate(right, 1) if act.job.marking)

    async def both():
        clumsy = expert_model(script(world, Clumsy([wrong_turn])), TERSE)
        environment = await world.open()
        rollout = await Rollout.begin(setting_of(world, clumsy), environment, InMemory(), world.system, world.opening)
        first = await finish(world, rollout)
        better = expert_model(right, TERSE)
        rollout.setting = setting_of(world, better)
        second = await finish(world, await rollout.fork(first.steps[wrong_turn].step_id))
        return first, second, await world.judge(environment)

    first, second, again = asyncio.run(both())
    assert (first.judged.passed, second.judged.passed) == (False, True)
    assert again == first.judged
    assert [mark.turn for mark in second.judged.marks] == list(range(1, 9))
