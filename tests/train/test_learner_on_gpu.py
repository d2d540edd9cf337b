"""On CUDA the learner's gradients, by compiled layers and kernels for spans of any length, are those of a plain forward
in float64; and in 16 bits as near to them as 16 bits allow."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from dataclasses import replace  # noqa: E402

from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM  # noqa: E402

from gametape.engines.torch.device import Placement  # noqa: E402
from gametape.train import dense_attention, varlen_attention  # noqa: E402
from gametape.train.learner import LocalLearner  # noqa: E402
from gametape.train.ranks import Ranks  # noqa: E402
from gametape.train.shards import open_ranks  # noqa: E402
from tests.train.losses.cases import run_config  # noqa: E402
from tests.train.sharded import families  # noqa: E402

SHAPE = families._SHAPE | {"hidden_size": 64}
"""Heads of 16, which every kernel takes."""
SHAPES = {
    "wide llama": lambda: LlamaForCausalLM(LlamaConfig(**SHAPE, tie_word_embeddings=True)),
    "wide qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SHAPE, head_dim=16)),
}
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")


@pytest.fixture(autouse=True)
def shapes(monkeypatch):
    for name, make in SHAPES.items():
        monkeypatch.setitem(families.FAMILIES, name, make)


def step_of(family, way, batch, placement, **memory):
    """The loss of the first step, and its gradients."""
    policy = replace(families.policy_of(family), placement=placement)
    if way == "lora":
        families.adapt(policy)
    config = run_config("loo", portion=60, ttf={"teacher": "current" if way == "current" else "start"})
    optim = config.optim.model_copy(update={"compile_layers": "on"})
    config = config.model_copy(update={"optim": optim, "memory": config.memory.model_copy(update=memory)})
    ranks = open_ranks(placement) if placement.device == "cuda" else Ranks()
    learner, gradients = LocalLearner(policy, config, ranks=ranks), {}

    def keep(_factor):
        learned = [(name, one) for name, one in policy.network.named_parameters() if one.requires_grad]
        gradients.update({name: one.grad.double().cpu() for name, one in learned})

    learner.optimizer.step = keep
    update = learner.update(batch, 0, 0)
    learner.close()
    return config, update, gradients


def errors_of(family, way, batch, placement, **memory):
    """Relative, of the loss and of each parameter's gradient."""
    config, update, found = step_of(family, way, batch, placement, **memory)
    loss, gradients = expected(way)(family, batch, config)
    errors = {name: float((found[name] - one).norm() / one.norm()) for name, one in gradients.items()}
    print(family, way, placement, memory, f"loss {abs(update.loss - loss) / abs(loss):.1e}, {max(errors.values()):.1e}")
    return abs(update.loss - loss) / abs(loss), errors


def expected(way):
    return families.expected_of_adapters if way == "lora" else families.expected


def distance(found, gradients):
    """Relative, of all gradients as one vector: those that are nearly nothing count for nearly nothing."""
    gap = sum(float((found[name] - one).square().sum()) for name, one in gradients.items())
    return (gap / sum(float(one.square().sum()) for one in gradients.values())) ** 0.5


@needs_cuda
@pytest.mark.parametrize("recompute", ["on", "off"])
@pytest.mark.parametrize("way", ["start", "current", "lora"])
@pytest.mark.parametrize("family", SHAPES)
def test_in_float32_they_are_exact(family, way, recompute):
    """With shared prompts, segments, targets and an anchor, in micro-batches that split groups. In the first step the
    policy as it is now is the same teacher as the start."""
    batch = families.batch_of()
    loss, errors = errors_of(family, way, batch, Placement("cuda", "float32"), recompute=recompute)
    assert loss < 1e-4
    assert max(errors.values()) < 1e-4


@needs_cuda
@pytest.mark.parametrize("way", ["start", "lora"])
@pytest.mark.parametrize("family", SHAPES)
def test_in_bfloat16_they_are_as_near_as_that_allows(family, way):
    """Without targets, whose weights go by which token is likeliest. The bound is what transformers' own forward and
    backward in bfloat16 come to, with exact losses."""
    batch = without_targets(families.batch_of())
    config, _, found = step_of(family, way, batch, Placement("cuda", "bfloat16"))
    _, gradients = expected(way)(family, batch, config)
    _, rounded = expected(way)(family, batch, config, rounded_on="cuda")
    ours, plain = distance(found, gradients), distance(rounded, gradients)
    print(family, way, f"{ours:.1e} beside {plain:.1e}")
    assert ours < 1.5 * plain + 0.01


@needs_cuda
@pytest.mark.parametrize("way", ["start", "current"])
def test_nothing_waits_for_the_gpu_before_the_step(way, monkeypatch):
    """Where one part has all targets, so that their norm is known without a forward beforehand."""
    policy = replace(families.policy_of("wide llama"), placement=Placement("cuda", "bfloat16"))
    config = run_config("loo", portion=4096, ttf={"teacher": way})
    learner = LocalLearner(policy, config, ranks=open_ranks(policy.placement))
    learner.update(families.batch_of(), 0, 0)
    add = learner._gradient.add

    def watched(*given):
        torch.cuda.set_sync_debug_mode("error")
        try:
            add(*given)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    monkeypatch.setattr(learner._gradient, "add", watched)
    assert learner.update(families.batch_of(), 1, 1).steps == 1
    learner.close()


@needs_cuda
@pytest.mark.parametrize("length", [256, 4096])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_kernels_for_spans_of_one_length_agree_with_those_for_any(groups, causal, length):
    """One is chosen on every device; that it is right is not left to how fast it is."""
    usual = varlen_attention.flash_forward, varlen_attention.flash_backward
    heads = dense_attention.Heads(torch.device("cuda", 0), torch.bfloat16, 4, groups, 64, causal)
    kernel = dense_attention.best_of(heads, length, usual)
    assert heads.differ(kernel, usual) <= dense_attention._TOLERANCE


@needs_cuda
@pytest.mark.parametrize("family", SHAPES)
def test_targets_have_a_gradient_in_bfloat16(family):
    _, update, gradients = step_of(family, "current", families.batch_of(), Placement("cuda", "bfloat16"))
    assert update.targets == 6
    assert update.ttf > 0
    assert all(one.isfinite().all() for one in gradients.values())


@pytest.mark.slow
def test_compiled_for_a_cpu_they_are_exact_too():
    batch = families.batch_of()
    loss, errors = errors_of("wide qwen3", "start", batch, Placement("cpu", "float32"), recompute="on")
    assert loss < 1e-4
    assert max(errors.values()) < 1e-4


def without_targets(batch):
    return replace(batch, samples=tuple(replace(sample, targets=()) for sample in batch.samples))
