"""A policy whose layers compute in another dtype than its weights are kept in, sampled from a copy."""

from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from gametape.core.config import OptimConfig, RunConfig, TinyConfig
from gametape.engines.torch.cpu_dtype import probe_bfloat16
from gametape.engines.torch.device import Placement
from gametape.train.learner import LocalLearner
from gametape.train.policy import create_tiny_policy, load_policy
from gametape.train.shards import open_ranks, whole
from tests.train.sharded.families import batch_of


def test_masters_stay_float32_and_the_sampler_follows_them(tmp_path: Path) -> None:
    trial = probe_bfloat16()
    if trial is None or not trial.works:
        pytest.skip("this CPU does not compute in bfloat16")
    create_tiny_policy(tmp_path / "start", TinyConfig(layers=2, width=32, heads=2, window=128), seed=1)
    placement = Placement("cpu", "bfloat16")
    policy = load_policy(tmp_path / "start", placement)
    config = RunConfig(arm="rlvr", tasks="worlds:easy", optim=OptimConfig(learning_rate=1e-3))
    try:
        learner = LocalLearner(policy, config, ranks=open_ranks(placement))
        policy.sampler()
        before = policy.sampler_network.model.embed_tokens.weight.clone()
        update = learner.update(batch_of(), 0, 0)
        assert update.gradient is not None
        assert update.gradient > 0
        weights = learner.publish()
        assert all(tensor.dtype == torch.float32 for tensor in weights.values())
        named = dict(policy.network.named_parameters())
        for name, tensor in policy.sampler_network.named_parameters():
            assert tensor.dtype == torch.bfloat16
            assert torch.equal(tensor, whole(named[name]).bfloat16()), name
        assert not torch.equal(before, policy.sampler_network.model.embed_tokens.weight)
    finally:
        dist.destroy_process_group()
