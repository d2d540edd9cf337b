"""Worlds in the agent's loop: turns are counted as the loop counts them, and any turn can be forked."""

import asyncio
from dataclasses import replace

import pytest

from gametape.agent.episode import finish_episode, rollout_config_for, run_episode
from gametape.agent.limits import RolloutLimits
from gametape.agent.recorder import MemoryRecorder
from gametape.agent.rollout import Rollout
from gametape.core.messages import Sampling
from gametape.tasks.worlds.experts import ErrorAtTurnsExpert, perfect_expert, script_episode
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.world import World
from gametape.train.demonstrations import expert_policy
from gametape.train.rollouts import RolloutSample, gradient_members

from .test_demonstrations import TERSE


def config_of(world, model):
    return rollout_config_for(world, model, Sampling(), RolloutLimits())


def test_turns_without_a_call_are_counted_and_cost_no_job():
    world = World(WorldSpec(seed=1, horizon=6))
    model = expert_policy(script_episode(world, perfect_expert), TERSE)
    garbage = TERSE.tokenizer.encode("blue blue") + list(TERSE.stop_ids)
    turns = model.engine.turns
    engine = replace(model.engine, turns=[*turns[:2], garbage, *turns[2:4], garbage, *turns[4:]])
    played = asyncio.run(run_episode(world, config_of(world, replace(model, engine=engine))))
    assert played.score.passed
    assert [mark.turn for mark in played.score.marks] == [1, 2, 4, 5, 7, 8]


def test_whoever_says_nothing_useful_has_failed_and_was_not_cut_short():
    world = World(WorldSpec(seed=1, horizon=6))
    model = expert_policy([], TERSE)
    engine = replace(model.engine, turns=[list(TERSE.stop_ids)] * 20)
    played = asyncio.run(run_episode(world, config_of(world, replace(model, engine=engine))))
    assert played.end.outcome == "limit"
    assert (played.score.passed, played.overlong) == (False, False)
    assert gradient_members([RolloutSample.from_episode(played).result]) == [0]
    assert played.score.marks == ()


@pytest.mark.parametrize(("useful", "overlong"), [(3, True), (0, False)])
def test_whoever_runs_out_of_turns_is_cut_short_unless_none_was_of_use(useful: int, overlong: bool):
    world = World(WorldSpec(seed=1, horizon=6))
    model = expert_policy(script_episode(world, perfect_expert), TERSE)
    engine = replace(model.engine, turns=[*model.engine.turns[:useful], *([list(TERSE.stop_ids)] * 9)])
    config = config_of(world, replace(model, engine=engine))
    limits = config.limits.model_copy(update={"turns": 5})
    played = asyncio.run(run_episode(world, replace(config, limits=limits)))
    assert played.end.reason == "5 turns"
    assert played.overlong == overlong


def test_a_rollout_is_forked_at_the_turn_that_went_wrong():
    """From the state before its only error, another line of play succeeds; the first one is not touched."""
    world = World(WorldSpec(seed=2, horizon=8, load_bearing=1))
    right = script_episode(world, perfect_expert)
    wrong_turn = next(n for n, act in enumerate(right, 1) if act.job.marking)

    async def both():
        clumsy = expert_policy(script_episode(world, ErrorAtTurnsExpert([wrong_turn])), TERSE)
        environment = await world.reset()
        rollout = await Rollout.begin(
            config_of(world, clumsy), environment, MemoryRecorder(), world.system_prompt, world.user_prompt
        )
        first = await finish_episode(world, rollout)
        better = expert_policy(right, TERSE)
        rollout.config = config_of(world, better)
        second = await finish_episode(world, await rollout.fork(first.steps[wrong_turn].step_id))
        return first, second, await world.score(environment)

    first, second, again = asyncio.run(both())
    assert (first.score.passed, second.score.passed) == (False, True)
    assert again == first.score
    assert [mark.turn for mark in second.score.marks] == list(range(1, 9))
