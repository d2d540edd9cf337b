"""The balance of experts: its value, its gradient over parts, and what the log says."""

import pytest
import torch
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

from gametape.train.router_balance import ExpertChoices, balance_loss


def routers(layers: int = 2, rows: int = 40, seed: int = 0) -> list[torch.Tensor]:
    rng = torch.Generator().manual_seed(seed)
    return [torch.randn(rows, 4, generator=rng, dtype=torch.float64).requires_grad_() for _ in range(layers)]


def test_one_layer_has_the_value_of_transformers_own_loss() -> None:
    (logits,) = given = routers(layers=1)
    actual = balance_loss(given, ExpertChoices.of_routers(given, 2))
    expected = load_balancing_loss_func((logits,), 4, 2)
    assert float(actual.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)


def test_parts_add_up_to_the_whole() -> None:
    given = routers()
    choices = ExpertChoices.of_routers(given, 2)
    whole = torch.autograd.grad(balance_loss(given, choices), given)
    first, second = ([logits[rows] for logits in given] for rows in (slice(0, 13), slice(13, 40)))
    parts = [ExpertChoices.of_routers(part, 2) for part in (first, second)]
    summed = parts[0] + parts[1]
    assert torch.equal(summed.chosen_LE, choices.chosen_LE)
    split = torch.autograd.grad(balance_loss(first, summed) + balance_loss(second, summed), given)
    torch.testing.assert_close(split, whole)


def test_the_log_says_how_uneven_loads_are() -> None:
    even = ExpertChoices(torch.full((2, 4), 10.0), 20)
    assert even.to_log() == {"load_most": 1.0, "load_least": 1.0, "unused": 0}
    collapsed = ExpertChoices(torch.tensor([[20.0, 20.0, 0.0, 0.0]]), 20)
    assert collapsed.to_log() == {"load_most": 2.0, "load_least": 0.0, "unused": 2}
