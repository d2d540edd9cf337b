"""The forward over a tree gives what its sequences give one by one, log-probs in chunks are those of the whole, and the
lean layers are the plain ones."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from torch.nn import functional  # noqa: E402
from transformers import Gemma2Config, Gemma2ForCausalLM, GPT2Config, GPT2LMHeadModel, PhiConfig, PhiForCausalLM  # noqa: E402

from gametape.core.errors import BadInput  # noqa: E402
from gametape.train.forward import forward, head_of, rms_norm, silu_gate, span_logits, token_logprobs  # noqa: E402  # noqa: E402  # noqa: E402
from gametape.train.packing import TokenNode, pack_nodes  # noqa: E402

from ..engines.torch.networks import FAMILIES  # noqa: E402
from ..engines.torch.networks import network as frozen_network  # noqa: E402
from .trees import GROUP, Largest, alone, ids, sequence_of  # noqa: E402


def network(family="llama"):
    return frozen_network(family).requires_grad_()


def gradients(module, loss):
    tensors = torch.autograd.grad(loss, list(module.parameters()), allow_unused=True, materialize_grads=True)
    return dict(zip((name for name, _ in module.named_parameters()), tensors, strict=True))


def weighted(logits, start):
    """A loss that every logit is in, each with a weight of its own."""
    steps = torch.arange(start, start + logits.numel(), dtype=logits.dtype)
    return (logits * torch.sin(steps).view_as(logits)).sum()


def close(actual, expected, tolerance):
    for name, tensor in actual.items():
        scale = max(1.0, float(expected[name].abs().max()))
        torch.testing.assert_close(
            tensor / scale, expected[name] / scale, atol=tolerance, rtol=0, msg=lambda m, n=name: f"{n}: {m}"
        )


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_logits_and_gradients_are_those_of_transformers_line_by_line(family, checkpointing):
    module, packed = network(family), pack_nodes(GROUP)
    if checkpointing:
        module.gradient_checkpointing_enable()
    hidden = forward(module, packed)
    logits = hidden @ head_of(module).t()
    loss, expected_loss = torch.zeros(()), torch.zeros(())
    for number, (node, rows) in enumerate(zip(GROUP, packed.rows, strict=True)):
        expected = module(sequence_of(packed, number)[None]).logits[0, -len(node.ids) :]
        torch.testing.assert_close(logits[rows], expected, atol=1e-4, rtol=1e-5)
        if not node.detached:
            loss, expected_loss = (
                loss + weighted(logits[rows], rows.start),
                expected_loss + weighted(expected, rows.start),
            )
    close(gradients(module, loss), gradients(module, expected_loss), 1e-5)


@st.composite
def trees(draw):
    nodes = []
    for number in range(draw(st.integers(1, 7))):
        length = draw(st.sampled_from([1, 2, 5, 17, 33, 40, 70]))
        parent = draw(st.one_of(st.none(), st.integers(0, number - 1))) if number else None
        at = None if parent is None else draw(st.one_of(st.none(), st.integers(0, len(nodes[parent].ids))))
        held = parent is not None and nodes[parent].detached
        nodes.append(TokenNode(ids(length, draw(st.integers(0, 96))), parent, at, held or draw(st.booleans())))
    return nodes


@given(nodes=trees(), family=st.sampled_from(["llama", "qwen2", "qwen3"]))
@settings(max_examples=40, deadline=None)
def test_any_tree_equals_its_lines(nodes, family):
    module, packed = network(family).double(), pack_nodes(nodes)
    hidden = forward(module, packed)
    loss = expected_loss = torch.zeros((), dtype=torch.float64)
    for number, (node, rows) in enumerate(zip(nodes, packed.rows, strict=True)):
        expected = forward(module, alone(packed, number))[-len(node.ids) :]
        torch.testing.assert_close(hidden[rows], expected, atol=1e-10, rtol=0)
        loss = loss + weighted(hidden[rows], rows.start)
        expected_loss = expected_loss + weighted(expected.detach() if node.detached else expected, rows.start)
    if packed.gradient_rows:
        close(gradients(module, loss), gradients(module, expected_loss), 1e-10)


def test_gradients_agree_with_finite_differences():
    module, packed = (
        network("qwen3").double(),
        pack_nodes([TokenNode(ids(5)), TokenNode(ids(3, 1), 0), TokenNode(ids(4, 2), 0, at=2)]),
    )
    weight = module.model.layers[0].self_attn.k_proj.weight
    loss = weighted(forward(module, packed), 0)
    (grad,) = torch.autograd.grad(loss, [weight])
    step = torch.zeros_like(weight)
    step[3, 7] = 1e-5
    with torch.no_grad():
        up, down = (
            weighted(
                torch.func.functional_call(
                    _Wrapped(module, packed),
                    {"module.model.layers.0.self_attn.k_proj.weight": weight + sign * step},
                    (),
                ),
                0,
            )
            for sign in (1, -1)
        )
    assert float((up - down) / 2e-5) == pytest.approx(float(grad[3, 7]), rel=1e-6)


class _Wrapped(torch.nn.Module):
    def __init__(self, module, packed):
        super().__init__()
        self.module, self.packed = module, packed

    def forward(self):
        return forward(self.module, self.packed)


@pytest.mark.parametrize("checkpointing", [False, True])
def test_a_detached_branch_leaves_no_trace_in_the_gradient(checkpointing):
    module, packed = network(), pack_nodes(GROUP)
    if checkpointing:
        module.gradient_checkpointing_enable()
    hidden = forward(module, packed)
    none = gradients(module, hidden[packed.gradient_rows :].square().sum())
    assert all(not tensor.any() for tensor in none.values())
    without = pack_nodes([node for node in GROUP if not node.detached])
    actual = gradients(module, forward(module, packed)[: packed.gradient_rows].square().sum())
    expected = gradients(module, forward(module, without).square().sum())
    assert all(torch.equal(actual[name], expected[name]) for name in expected)


def test_nothing_is_saved_for_the_backward_of_detached_rows():
    module = network()

    def saved(nodes):
        sizes = []
        with torch.autograd.graph.saved_tensors_hooks(lambda one: sizes.append(one.numel()) or one, lambda one: one):
            forward(module, pack_nodes(nodes))
        return sum(sizes)

    assert saved([TokenNode(ids(20)), TokenNode(ids(40, 1), 0, detached=True)]) == saved([TokenNode(ids(20))])


def test_no_tensor_is_as_large_as_a_mask_over_the_tree():
    module = network()
    packed = pack_nodes(
        [TokenNode(ids(400)), *(TokenNode(ids(300, number), 0) for number in range(3)), TokenNode(ids(30), 1, at=200)]
    )
    with Largest() as seen:
        forward(module, packed).sum().backward()
    assert seen.numel < len(packed.ids_N) ** 2 / 4


@pytest.mark.parametrize(
    "made",
    [
        lambda: GPT2LMHeadModel(GPT2Config(vocab_size=97, n_positions=256, n_embd=48, n_layer=2, n_head=4)),
        lambda: Gemma2ForCausalLM(
            Gemma2Config(
                vocab_size=97, hidden_size=48, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                num_key_value_heads=2, head_dim=12, sliding_window=16,
            )
        ),
    ],
)  # fmt: skip
def test_another_family_runs_line_by_line(made):
    torch.manual_seed(0)
    module, packed = made().eval(), pack_nodes(GROUP)
    hidden = forward(module, packed)
    loss = expected_loss = torch.zeros(())
    for number, (node, rows) in enumerate(zip(GROUP, packed.rows, strict=True)):
        expected = module.base_model(sequence_of(packed, number)[None]).last_hidden_state[0, -len(node.ids) :]
        torch.testing.assert_close(hidden[rows], expected, atol=1e-4, rtol=1e-5)
        loss = loss + weighted(hidden[rows], rows.start)
        if not node.detached:
            expected_loss = expected_loss + weighted(expected, rows.start)
    close(gradients(module, loss), gradients(module, expected_loss), 1e-5)


def test_a_head_that_is_more_than_a_product_is_refused():
    shape = {
        "vocab_size": 97,
        "hidden_size": 48,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 4,
    }
    capped = Gemma2ForCausalLM(Gemma2Config(**shape, num_key_value_heads=2, head_dim=12))
    biased = PhiForCausalLM(PhiConfig(**shape))
    for module in (capped, biased):
        with pytest.raises(BadInput, match="not a plain product"):
            head_of(module)


ROWS, WIDTH, WORDS = 37, 24, 501


def hidden_head_targets(dtype=torch.float32):
    torch.manual_seed(0)
    hidden = torch.randn(ROWS, WIDTH, dtype=dtype, requires_grad=True)
    head = torch.randn(WORDS, WIDTH, dtype=dtype, requires_grad=True)
    return hidden, head, torch.randint(WORDS, (ROWS,))


def reference_logprobs(hidden, head, targets, temperature):
    logs = torch.log_softmax(hidden @ head.t() / temperature, -1)
    return logs.gather(1, targets[:, None])[:, 0], -(logs.exp() * logs).sum(-1)


@pytest.mark.parametrize("uses", [(1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("chunk", [1, 8, 37, 100, None])
def test_values_and_gradients_are_those_of_the_plain_way(chunk, temperature, uses):
    hidden, head, targets = hidden_head_targets(torch.float64)
    weights = torch.randn(2, ROWS, dtype=torch.float64)

    def loss(pair):
        return sum((weight * one).sum() for weight, one, used in zip(weights, pair, uses, strict=True) if used)

    actual = token_logprobs(hidden, head, targets, temperature, chunk)
    expected = reference_logprobs(hidden, head, targets, temperature)
    torch.testing.assert_close(actual, expected, atol=1e-12, rtol=0)
    grads, expected_grads = (torch.autograd.grad(loss(pair), (hidden, head)) for pair in (actual, expected))
    torch.testing.assert_close(grads, expected_grads, atol=1e-11, rtol=0)


def test_float32_agrees_to_a_millionth_with_float64():
    hidden, head, targets = hidden_head_targets()
    with torch.no_grad():
        head.div_(WIDTH**0.5)
    actual = token_logprobs(hidden, head, targets, 1.0, 8)
    expected = reference_logprobs(hidden.double(), head.double(), targets, 1.0)
    for one, other in zip(actual, expected, strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one.double(), other, atol=1e-6, rtol=1e-6)


def test_logits_far_from_zero_do_not_overflow():
    hidden, head, targets = hidden_head_targets()
    logp, entropy = token_logprobs(hidden * 300, head, targets, 1.0, 8)
    (logp.sum() + entropy.sum()).backward()
    assert all(one.isfinite().all() for one in (logp, entropy, hidden.grad, head.grad))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
def test_half_precision_is_normalised_and_summed_in_float32():
    hidden, head, targets = (one.detach().cuda() for one in hidden_head_targets(torch.bfloat16))
    halves, wide = (
        [one.to(dtype).clone().requires_grad_() for one in (hidden, head)] for dtype in (hidden.dtype, torch.float32)
    )
    for pair in (halves, wide):
        token_logprobs(*pair, targets, 1.0, 1)[0].sum().backward()
    assert span_logits(*halves).dtype == torch.float32
    for one, other in zip(halves, wide, strict=True):
        assert float((one.grad.float() - other.grad).abs().max()) < 0.03 * float(other.grad.abs().max())


def test_never_more_logits_at_a_time_than_a_chunk_has():
    hidden, head, targets = (
        torch.randn(512, 8, requires_grad=True),
        torch.randn(1000, 8, requires_grad=True),
        torch.zeros(512, dtype=torch.long),
    )
    with Largest() as seen:
        logp, entropy = token_logprobs(hidden, head, targets, 1.0, 16)
        (logp + entropy).sum().backward()
    assert seen.numel == 16 * 1000


def test_a_large_vocabulary_is_chunked_unasked():
    hidden, head = torch.randn(256, 2, requires_grad=True), torch.randn(150_000, 2)
    with Largest() as seen:
        token_logprobs(hidden, head, torch.zeros(256, dtype=torch.long))[0].sum().backward()
    assert seen.numel <= 1 << 23


def test_only_what_needs_a_gradient_gets_one():
    hidden, head, targets = hidden_head_targets()
    token_logprobs(hidden.detach(), head, targets)[0].sum().backward()
    assert hidden.grad is None
    assert head.grad is not None


def test_a_span_has_all_its_logits():
    hidden, head, _ = hidden_head_targets()
    torch.testing.assert_close(span_logits(hidden, head, 2.0), hidden @ head.t() / 2.0)


@pytest.mark.parametrize("shape", [(7, 12), (7, 3, 12)])
def test_the_norm_and_its_gradients(shape):
    torch.manual_seed(0)
    x, weight = (
        torch.randn(shape, dtype=torch.float64, requires_grad=True),
        torch.randn(12, dtype=torch.float64, requires_grad=True),
    )
    pair = rms_norm(x, weight, 1e-5), functional.rms_norm(x, (12,), weight, 1e-5)
    torch.testing.assert_close(*pair)
    back = torch.randn(shape, dtype=torch.float64)
    torch.testing.assert_close(*(torch.autograd.grad(one, (x, weight), back) for one in pair))


def test_the_gated_unit_and_its_gradients():
    torch.manual_seed(0)
    gate, up, back = (torch.randn(7, 12, dtype=torch.float64, requires_grad=True) for _ in range(3))
    pair = silu_gate(gate, up), functional.silu(gate) * up
    torch.testing.assert_close(*pair)
    torch.testing.assert_close(*(torch.autograd.grad(one, (gate, up), back.detach()) for one in pair))


def test_half_precision_is_summed_in_float32():
    x = torch.full((1, 4096), 300.0, dtype=torch.bfloat16)
    assert rms_norm(x, torch.ones(4096, dtype=torch.bfloat16), 0.0).eq(1).all()
