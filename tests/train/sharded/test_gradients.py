"""Any number of ranks gives the loss and the gradients of a plain forward in float64."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.train.losses.cases import run_config
from tests.train.sharded.families import FAMILIES, batch_of, expected, expected_of_adapters
from tests.train.sharded.launch import run_ranks

BOUND = 1e-4


@pytest.fixture(scope="module")
def references() -> dict[str, dict[str, Any]]:
    """Of all weights and of adapters, by family."""
    torch.set_num_threads(1)
    config = run_config("loo", portion=60)
    ways = {"full": expected, "lora": expected_of_adapters}
    return {way: {family: made(family, batch_of(), config) for family in FAMILIES} for way, made in ways.items()}


@pytest.mark.parametrize(
    ("world", "replicas", "teacher", "way"),
    [
        (2, 1, "start", "full"),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (
                (1, 1, "start", "full"),
                (4, 2, "start", "full"),
                (2, 1, "current", "full"),
                (2, 1, "start", "lora"),
            )
        ),
    ],
)
def test_loss_and_every_gradient_are_exact(
    tmp_path: Path, references: dict[str, dict[str, Any]], world: int, replicas: int, teacher: str, way: str
) -> None:
    """In one process that is sharded, in two, and in two copies of two shards; the teacher's hinted spans in a forward
    of its own, or beside the student's."""
    run_ranks("tests.train.sharded.gradient_rank", world, replicas, teacher, way, tmp_path / "found.pt")
    found = torch.load(tmp_path / "found.pt")
    for family, (loss, gradients) in references[way].items():
        update = found[family]["update"]
        loss_error = abs(update["loss"] - loss) / abs(loss)
        errors = {
            name: float((found[family]["gradients"][name].double() - one).norm() / one.norm())
            for name, one in gradients.items()
        }
        worst = max(errors, key=lambda name: errors[name])
        print(f"{world} x {replicas} {teacher} {way} {family}: loss {loss_error:.1e}, {worst} {errors[worst]:.1e}")
        assert loss_error < BOUND, family
        assert errors[worst] < BOUND, (family, worst)
        assert update["targets"] == 6
        assert update["gradient"] == pytest.approx(
            float(torch.stack([one.square().sum() for one in gradients.values()]).sum().sqrt()), rel=BOUND
        )
        assert (update["routers"] is not None) == family.endswith("moe")
