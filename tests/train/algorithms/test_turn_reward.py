"""The flag of a turn as its reward: compared with the same turn of the rollouts that somebody has looked at."""

from dataclasses import replace

import pytest

from gametape.core.config import RunConfig
from gametape.core.errors import BadInput
from gametape.core.token_segments import TokenSegment
from gametape.train.algorithms import make_algorithm
from gametape.train.algorithms.opsd import Opsd
from gametape.train.algorithms.turn_reward import TurnReward, turn_advantages
from gametape.train.rollouts import DistillTarget, PromptRequest, RolloutGroup, RolloutResult, RolloutSample


def rollout(steps: tuple[int, ...], reward: float = 0.0, **result: bool) -> RolloutSample:
    """Two chosen tokens a step."""
    of_tokens = [0, *(step for step in steps for _ in range(2))]
    chosen = [int(step > 0) for step in of_tokens]
    segment = TokenSegment(list(range(len(of_tokens))), chosen, [0.0] * len(chosen), [0] * len(chosen), of_tokens)
    outcome = RolloutResult(reward, passed=reward > 0, **result)
    return RolloutSample((segment,), outcome, turns=len(steps), tokens_read=0, tokens_generated=0)


def flag(index: int, step: int) -> DistillTarget:
    return DistillTarget(1, 2, 1, (), learn="penalty", step=step, rollout_index=index, segment_index=0)


GROUP = RolloutGroup(
    PromptRequest(0, 0, 0),
    (rollout((2, 4, 6)), rollout((3, 5, 9)), rollout((2, 4)), rollout((2, 4, 6), infra_error=True)),
    targets=(flag(0, 4), flag(1, 9)),
)


def test_a_turn_is_compared_with_the_same_turn_of_the_others() -> None:
    found = turn_advantages(GROUP, annotated=8, variant="loo")
    assert found == {
        0: {4: pytest.approx(-1.0), 6: pytest.approx(1.0)},
        1: {5: pytest.approx(0.5), 9: pytest.approx(-1.0)},
        2: {4: pytest.approx(0.5)},
    }


def test_rollouts_that_nobody_looked_at_say_nothing_and_passes_are_right() -> None:
    passed = replace(GROUP, rollouts=(*GROUP.rollouts[:2], rollout((2, 4, 6), reward=1.0)), targets=(flag(0, 4),))
    assert turn_advantages(passed, annotated=1, variant="loo") == {0: {4: -1.0}, 2: {4: 1.0}}
    assert turn_advantages(replace(GROUP, targets=()), annotated=8, variant="loo") == {0: {}, 1: {}, 2: {}}


def test_a_group_that_fails_altogether_has_a_gradient_and_the_weight_scales_it() -> None:
    config = RunConfig(arm="rlvr_turn_reward", tasks="worlds:easy", algorithm={"weight": 2.0})
    algorithm = make_algorithm(config)
    assert isinstance(algorithm, TurnReward)
    samples = algorithm.build_batch([GROUP]).samples
    assert [sample.rollout_index for sample in samples] == [0, 1, 2]
    assert samples[0].token_advantages.tolist() == [0.0, 0.0, -2.0, -2.0, 2.0, 2.0]


def test_the_rollouts_advantage_comes_on_top() -> None:
    mixed = replace(GROUP, rollouts=(*GROUP.rollouts[:2], rollout((2, 4, 6), reward=1.0)), targets=(flag(0, 4),))
    algorithm = make_algorithm(RunConfig(arm="rlvr_turn_reward", tasks="worlds:easy"))
    first, *_ = algorithm.build_batch([mixed]).samples
    assert first.token_advantages.tolist() == [-0.5, -0.5, -1.5, -1.5, -0.5, -0.5]


def test_whole_rollouts_are_not_read_by_the_policy_itself() -> None:
    with pytest.raises(BadInput, match=r"ttf\.teacher"):
        make_algorithm(RunConfig(arm="rlvr_opsd", tasks="worlds:easy", ttf={"teacher": "current"}))
    assert isinstance(make_algorithm(RunConfig(arm="rlvr_opsd", tasks="worlds:easy")), Opsd)
