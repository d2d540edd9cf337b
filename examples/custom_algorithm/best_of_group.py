"""An algorithm and a reward of your own: imitate the best rollout of each group, where a failure costs a little.

python examples/custom_algorithm/best_of_group.py [OUT]
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import gametape

sys.path.insert(0, str(Path(__file__).parents[1] / "custom_environment"))
from vending import CONFIG, make


class BestOfGroup(gametape.Algorithm):
    """The policy gradient with a weight of one on the best rollout of a group, and none where all are alike."""

    compares_rollouts = True  # groups without a difference are sampled again

    def score_group(self, group: gametape.RolloutGroup) -> Mapping[int, float]:
        """By index of a rollout: its advantage. Rollouts that are left out get no gradient."""
        rewards = [result.reward for result in group.results]
        if max(rewards) == min(rewards):
            return {}
        return {rewards.index(max(rewards)): 1.0}


def my_reward(score: gametape.EpisodeScore) -> float:
    """What an episode is worth to the learner, made of its score: a failure costs a little."""
    return score.reward if score.passed else -0.1


def main(out: str = "runs/best-of-group") -> None:
    result = gametape.train_policy(CONFIG, out, environments=make, algorithm=BestOfGroup, reward=my_reward)
    print(f"held-out success: {result['success_before']:.0%} before, {result['success_after']:.0%} after")


if __name__ == "__main__":
    main(*sys.argv[1:])
