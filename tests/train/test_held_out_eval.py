"""What is forgotten is seen in the likelihood of old successes: no more than is, and only of what was sure."""

import json
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from gametape.core.token_segments import TokenSegment
from gametape.train.batch import TrainSample
from gametape.train.held_out_eval import ForgettingProbe


class Weights:
    """Log-probabilities of four chosen tokens, the same in every line."""

    def __init__(self, *probabilities: float) -> None:
        self.now = torch.tensor(probabilities).log()

    def scored(self, lines: Sequence[TrainSample]) -> list[Tensor]:
        return [self.now] * len(lines)


def success(number: int) -> list[TokenSegment]:
    return [TokenSegment([number, 1, 2, 3, 4], [0, 1, 1, 1, 1], [0.0] * 5, [-1, 0, 0, 0, 0], [0, 1, 1, 1, 1])]


def probe_of(weights: Weights, successes: int = 40) -> ForgettingProbe:
    rehearsal = ForgettingProbe(weights.scored, 32)
    rehearsal.keep_successes([success(number) for number in range(successes)], 0.8)
    return rehearsal


def test_it_says_how_many_points_of_success_would_be_gone() -> None:
    weights = Weights(0.99, 0.98, 1.0, 0.99)
    rehearsal = probe_of(weights)
    assert rehearsal.forgotten_share() == 0
    weights.now = torch.tensor([0.99, 0.98, 0.95, 0.99]).log()
    assert rehearsal.forgotten_share() == pytest.approx(0.8 * 0.05, abs=1e-6)


def test_what_it_was_not_sure_of_may_change_and_what_got_better_owes_nothing() -> None:
    weights = Weights(0.99, 0.5, 0.3, 0.95)
    rehearsal = probe_of(weights)
    weights.now = torch.tensor([1.0, 0.01, 0.01, 0.99]).log()
    assert rehearsal.forgotten_share() == 0


def test_the_best_evaluation_is_what_it_is_compared_with() -> None:
    weights = Weights(0.95, 0.95, 0.95, 0.95)
    rehearsal = probe_of(weights)
    weights.now = torch.tensor([1.0, 1.0, 1.0, 0.95]).log()
    rehearsal.keep_successes([success(99)] * 9, 0.7)
    assert rehearsal.forgotten_share() == 0
    rehearsal.keep_successes([success(99)] * 9, 0.9)
    weights.now = torch.tensor([1.0, 1.0, 1.0, 0.855]).log()
    assert rehearsal.forgotten_share() == pytest.approx(0.9 * 0.1, abs=1e-6)


def test_no_more_are_kept_than_may_be_and_none_where_none_may() -> None:
    weights = Weights(0.95)
    assert len(probe_of(weights).state()["kept"]) == 32
    none = ForgettingProbe(weights.scored, 0)
    none.keep_successes([success(1)] * 9, 0.8)
    assert none.forgotten_share() is None


def test_without_a_success_nothing_is_said_and_a_rewritten_context_is_none() -> None:
    rehearsal = ForgettingProbe(Weights(1.0).scored, 32)
    assert rehearsal.forgotten_share() is None
    rehearsal.keep_successes([success(1) + success(2)] * 9, 0.5)
    assert rehearsal.forgotten_share() is None


def test_a_few_successes_are_no_skill() -> None:
    weights = Weights(0.99, 0.98, 1.0, 0.99)
    assert probe_of(weights, successes=7).forgotten_share() is None
    assert probe_of(weights, successes=8).forgotten_share() == 0


def test_it_is_the_same_after_a_restart() -> None:
    weights = Weights(0.99, 0.98, 1.0, 0.99)
    rehearsal = probe_of(weights)
    weights.now = torch.tensor([0.99, 0.9, 0.95, 0.99]).log()
    again = ForgettingProbe(weights.scored, 32)
    again.restore(json.loads(json.dumps(rehearsal.state())))
    assert again.forgotten_share() == rehearsal.forgotten_share() != 0
