"""The coach with the engine that trains: what it scores is what was sampled, and many looks at once are as one."""

import asyncio

import pytest

from gametape.agent.episode import rollout_config_for, run_episode
from gametape.agent.limits import RolloutLimits
from gametape.coach.coach import Coach, CoachSettings
from gametape.core.config import TinyConfig
from gametape.core.messages import Sampling
from gametape.tasks.worlds.spec import WorldSpec
from gametape.tasks.worlds.world import World
from gametape.train.policy import create_tiny_policy, load_policy

LIMITS = RolloutLimits(turn_tokens=6)


@pytest.fixture(scope="module")
def policy(tmp_path_factory):
    directory = tmp_path_factory.mktemp("policy")
    create_tiny_policy(directory, TinyConfig(width=32, layers=2, heads=2), seed=0)
    return load_policy(directory)


async def run_rollout(model, seed):
    world = World(WorldSpec(seed=seed, horizon=4))
    with model.engine.participant():
        return await run_episode(world, rollout_config_for(world, model, Sampling(seed=seed), LIMITS, f"r{seed}"))


def test_student_scores_are_the_sampled_ones_and_looking_is_deterministic(policy):
    async def look():
        model = policy.sampler()
        played = await asyncio.gather(*(run_rollout(model, seed) for seed in range(4)))
        coach = Coach(CoachSettings(gates=frozenset({"g0", "g1"}), limits=LIMITS))
        return played, await asyncio.gather(*(coach.annotate(one, model, f"r{at}") for at, one in enumerate(played)))

    played, looked = asyncio.run(look())
    assert sum(map(len, looked)) > 8
    for one, hints in zip(played, looked, strict=True):
        steps = {step.step_id: step for step in one.steps}
        for hint in hints:
            recorded = steps[hint.step].metrics.logprobs[slice(*hint.span)]
            assert hint.student_logprobs == pytest.approx(recorded, abs=1e-4)
            assert hint.teacher_logprobs != pytest.approx(recorded, abs=1e-4)
            assert hint.kl > 0
            assert hint.gates.g0.value == pytest.approx(sum(recorded) - sum(hint.teacher_logprobs), abs=1e-3)
    assert asyncio.run(look())[1] == looked


def test_forks_in_lockstep(policy):
    async def look():
        model = policy.sampler()
        played = await run_rollout(model, 1)
        coach = Coach(CoachSettings(gates=frozenset({"g2"}), forks=4, limits=LIMITS))
        return await coach.annotate(played, model, "r"), coach.cost

    hints, cost = asyncio.run(look())
    assert cost.forks == 4 * len({hint.type for hint in hints})
    assert all(hint.gates.g2.forks == 4 and not hint.used for hint in hints)
