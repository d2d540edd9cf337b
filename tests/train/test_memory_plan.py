"""What is planned, from the shape alone; and that what does not fit is refused with what would."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gametape.core.config import LoraConfig, MemoryConfig, RunConfig, TinyConfig, TTFConfig
from gametape.engines.torch.device import CPU_FLOAT32, Placement
from gametape.train import memory_plan
from gametape.train.learner import LocalLearner
from gametape.train.memory_plan import NotEnoughMemory, Shape, check_memory, describe, plan_memory
from gametape.train.policy import create_tiny_policy, load_policy
from tests.train.sharded.families import batch_of

LARGE = Shape(
    parameters=8_200_000_000,
    adapted=2_700_000,
    width=4096,
    layers=36,
    head=151_936 * 4096,
    kv_width=2 * 36 * 1024,
    window=16384,
)
GPU = Placement("cuda", "bfloat16")
FREE = 139_000_000_000


def config(arm: str = "rlvr", **sections: object) -> RunConfig:
    return RunConfig(arm=arm, model="smollm2", tasks="worlds:easy", **sections)


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tiny") / "start"
    create_tiny_policy(directory, TinyConfig(layers=2, width=32, heads=2, window=128), seed=3)
    return directory


def test_the_shape_is_that_of_the_network(start: Path) -> None:
    policy, shape = load_policy(start), Shape.of_directory(start)
    assert (shape.parameters, shape.width, shape.layers) == (policy.parameters, 32, 2)
    assert shape.kv_width == 2 * 2 * 2 * 16
    assert shape.head == policy.network.lm_head.weight.numel()
    policy.adapt(LoraConfig(rank=3), seed=0)
    learned = sum(one.numel() for one in policy.network.parameters() if one.requires_grad)
    assert shape.adapted * 3 == learned


def test_what_is_counted_is_what_is_allocated(start: Path) -> None:
    """Of the parts that are not estimates: weights, gradients and states of a full run on a CPU."""
    policy = load_policy(start)
    plan = plan_memory(Shape.of_directory(start), config("rlvr"), CPU_FLOAT32, 1 << 40)
    learner = LocalLearner(policy, config("rlvr"))
    learner.update(batch_of(), 0, 0)
    states = sum(one.nbytes for one in learner.optimizer.tensors().values() if one.dim())
    assert plan.bytes_for["weights"] == sum(one.nbytes for one in policy.network.parameters())
    assert plan.bytes_for["optimiser"] == states
    assert plan.bytes_for["start"] == plan.bytes_for["weights"] == plan.bytes_for["gradients"]
    assert plan.bytes_for["sampler"] == plan.bytes_for["teacher"] == plan.bytes_for["gathered layers"] == 0


def test_adapters_make_the_start_and_the_states_free() -> None:
    full = plan_memory(LARGE, config("rlvr_ttf"), GPU, FREE)
    lora = plan_memory(LARGE, config("rlvr_ttf", lora=LoraConfig(rank=32)), GPU, FREE)
    assert full.total > FREE > lora.total
    assert lora.bytes_for["start"] == 0
    assert lora.bytes_for["optimiser"] < 0.05 * full.bytes_for["optimiser"]
    assert lora.bytes_for["weights"] < 18e9


def test_only_what_is_used_is_kept() -> None:
    bare = config("rlvr", memory=MemoryConfig(measure_start=False))
    assert plan_memory(LARGE, bare, GPU, FREE).bytes_for["start"] == 0
    for teacher, kept in (("ema", True), ("start", False)):  # which reads for the anchor as well
        ttf = TTFConfig(anchor=1.0, teacher=teacher)
        anchored = config("rlvr_ttf", memory=MemoryConfig(measure_start=False), ttf=ttf)
        assert bool(plan_memory(LARGE, anchored, GPU, FREE).bytes_for["start"]) == kept
    current = config("rlvr_ttf", ttf=TTFConfig(teacher="current"))
    assert plan_memory(LARGE, current, GPU, FREE).bytes_for["teacher"] == 0
    offloaded = plan_memory(LARGE, config("rlvr", memory=MemoryConfig(offload=True)), GPU, FREE)
    assert not any(offloaded.bytes_for[name] for name in ("weights", "optimiser", "gradients"))


def test_a_rank_holds_its_shards_and_whole_layers() -> None:
    """On GPUs one rank is counted, on a CPU all that share its memory; copies of the weights are not split."""
    alone, four, copies = (
        plan_memory(LARGE, config("rlvr", ranks=ranks, replicas=replicas), GPU, FREE).bytes_for
        for ranks, replicas in ((1, 1), (4, 1), (4, 2))
    )
    for name in ("weights", "gradients", "optimiser", "start"):
        assert (four[name], copies[name]) == (alone[name] / 4, alone[name] / 2), name
    for name in ("gathered layers", "head and logits", "sampler", "activations (estimate)"):
        assert four[name] == alone[name] > 0, name
    one, two = (plan_memory(LARGE, config("rlvr", ranks=ranks), CPU_FLOAT32, FREE).bytes_for for ranks in (1, 2))
    assert two["weights"] == one["weights"]
    assert two["activations (estimate)"] == 2 * one["activations (estimate)"]
    assert two["sampler"] == 2 * one["weights"], "what samples, and what the ranks publish into"
    many = config("rlvr", ranks=4)
    assert "for the first of 4 ranks; you have" in describe(plan_memory(LARGE, many, GPU, FREE), many, GPU)


def test_what_does_not_fit_is_refused_with_what_would(start: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_memory(start, config(), CPU_FLOAT32).fits
    monkeypatch.setattr(memory_plan, "free_bytes", lambda _device: FREE)
    monkeypatch.setattr(Shape, "of_directory", classmethod(lambda _cls, _directory, _context: LARGE))
    with pytest.raises(
        NotEnoughMemory, match=r"^8\.2B parameters, full: .* GB; LoRA: .* GB; you have 139 GB; what fits: "
    ):
        check_memory(start, config("rlvr_ttf"), GPU)
    fitting = check_memory(start, config("rlvr_ttf", lora=LoraConfig(rank=32)), GPU)
    assert describe(fitting, config("rlvr_ttf", lora=LoraConfig(rank=32)), GPU).startswith("8.2B parameters, LoRA: ")
    monkeypatch.setattr(memory_plan, "free_bytes", lambda _device: 1_000_000_000)
    with pytest.raises(NotEnoughMemory, match="take a smaller model"):
        check_memory(start, config(), GPU)


def test_the_longest_sample_comes_alone_and_is_planned_for(start: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the window is above what one pass takes; the longest window that would fit is said."""
    long = replace(LARGE, parameters=600_000_000, head=151_936 * 1024, width=1024, window=1 << 17)
    alone, packed = (plan_memory(shape, config(), GPU, FREE) for shape in (long, replace(long, window=8192)))
    wider = alone.bytes_for["activations (estimate)"] / packed.bytes_for["activations (estimate)"]
    assert wider == (1 << 17) / config().optim.micro_batch_tokens
    assert alone.kv_tokens(1, 2) == 1 << 17
    monkeypatch.setattr(Shape, "of_directory", classmethod(lambda _cls, _directory, _context: long))
    monkeypatch.setattr(memory_plan, "free_bytes", lambda _device: 40_000_000_000)
    with pytest.raises(NotEnoughMemory, match=r"what fits: --set [^;]*context\.tokens=") as refused:
        check_memory(start, config(), GPU)
    said = re.findall(r"--set ([\w.]+)=(\S+)", str(refused.value))
    tables = {name.partition(".")[0]: {name.partition(".")[2]: int(value)} for name, value in said}
    fitting = config(**tables)
    assert plan_memory(replace(long, window=fitting.context.tokens or 0), fitting, GPU, 40_000_000_000).fits


def test_a_limit_of_a_container_counts(tmp_path: Path) -> None:
    limits = {"memory.max": "3000\n", "memory.current": "1200\n", "memory.stat": "anon 900\ninactive_file 200\n"}
    for name, text in limits.items():
        (tmp_path / name).write_text(text)
    assert memory_plan._container_bytes(tmp_path) == 2000
    (tmp_path / "memory.max").write_text("max\n")
    assert memory_plan._container_bytes(tmp_path) == memory_plan._container_bytes(tmp_path / "none") == 1 << 62


def test_keys_and_values_get_what_is_left() -> None:
    plan = plan_memory(LARGE, config("rlvr", lora=LoraConfig(rank=32)), GPU, FREE)
    most = plan.kv_tokens(1 << 40, 2)
    assert plan.total + (most - (1 << 14)) * LARGE.kv_width * 2 <= FREE
    assert most > 1 << 17
    assert plan.kv_tokens(1 << 17, 2) == 1 << 17


@pytest.mark.parametrize("measured", [True, False])
def test_without_the_start_nothing_but_its_distance_is_missing(start: Path, measured: bool) -> None:
    policy = load_policy(start)
    update = LocalLearner(policy, config("rlvr", memory=MemoryConfig(measure_start=measured))).update(batch_of(), 0, 0)
    assert (update.kl_to_start is not None) == measured
    assert update.gradient is not None
    assert update.gradient > 0


def test_layers_that_are_computed_again_give_the_same_gradient(start: Path) -> None:
    norms = [
        LocalLearner(load_policy(start), config("rlvr", memory=MemoryConfig(recompute=choice)))
        .update(batch_of(), 0, 0)
        .gradient
        for choice in ("on", "off")
    ]
    torch.testing.assert_close(*norms)
