"""One rank of `test_gradients`: the first step's loss and gradients of every family, saved by rank 0."""

import sys
from pathlib import Path

import torch
import torch.distributed as dist

from gametape.train.learner import LocalLearner
from gametape.train.shards import whole
from tests.train.losses.cases import run_config
from tests.train.sharded.families import FAMILIES, adapt, batch_of, policy_of
from tests.train.sharded.launch import open_ranks


def main(replicas: int, teacher: str, lora: bool, out: Path) -> None:
    ranks = open_ranks(replicas)
    found = {}
    for family in FAMILIES:
        policy = policy_of(family)
        if lora:
            adapt(policy)
        learner = LocalLearner(policy, run_config("loo", portion=60, ttf={"teacher": teacher}), ranks=ranks)
        gradients: dict[str, torch.Tensor] = {}

        def keep(_factor: float, network=policy.network, gradients=gradients) -> None:
            learned = [(name, tensor) for name, tensor in network.named_parameters() if tensor.requires_grad]
            gradients |= {name: whole(tensor.grad) for name, tensor in learned}

        learner.optimizer.step = keep
        update = learner.update(batch_of(), 0, 0)
        found[family] = {"update": vars(update), "gradients": gradients}
    if ranks.rank == 0:
        torch.save(found, out)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3] == "lora", Path(sys.argv[4]))
