"""On CUDA the learner's gradients, by compiled layers and kernels for spans of any length, are those of a plain forward
in float64; and in 16 bits as near to them as 16 bits allow."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from dataclasses import replace  # noqa: E402

from transformers import LlamaConfig, LlamaForCausalLM, Qwen3Config, Qwen3ForCausalLM  # noqa: E402

from gametape.engines.torch.device import Placement  # noqa: E402
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
    loss, gradients = (families.expected_of_adapters if way == "lora" else families.expected)(family, batch, config)
    errors = {name: float((found[name] - one).norm() / one.norm()) for name, one in gradients.items()}
    print(family, way, placement, memory, f"loss {abs(update.loss - loss) / abs(loss):.1e}, {max(errors.values()):.1e}")
    return abs(update.loss - loss) / abs(loss), errors


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
    """Without targets, whose weights go by which token is likeliest. The bound is of the whole gradient."""
    batch = without_targets(families.batch_of())
    _, errors = errors_of(family, way, batch, Placement("cuda", "bfloat16"))
    assert sum(errors.values()) / len(errors) < 0.1


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
