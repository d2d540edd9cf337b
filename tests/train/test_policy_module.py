"""The forward over a tree gives what its sequences give one by one, for any decoder of transformers."""

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from transformers import (  # noqa: E402
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    GraniteConfig,
    GraniteForCausalLM,
    Mamba2Config,
    Mamba2ForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
    Olmo2Config,
    Olmo2ForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    PhiConfig,
    PhiForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

from gametape.core.errors import BadInput  # noqa: E402
from gametape.train.packing import TokenNode, pack_nodes  # noqa: E402
from gametape.train.policy_module import PolicyModule, padded_rows  # noqa: E402
from gametape.train.tree_layers import TreePass  # noqa: E402

from ..engines.torch.networks import FAMILIES  # noqa: E402
from ..engines.torch.networks import network as frozen_network  # noqa: E402
from .exact import exact  # noqa: E402
from .trees import GROUP, Largest, alone, ids, sequence_of  # noqa: E402

SHAPE = {
    "vocab_size": 97,
    "hidden_size": 48,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
MOE = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
OTHERS = {
    "qwen3-moe": lambda: Qwen3MoeForCausalLM(Qwen3MoeConfig(**SHAPE, **MOE, head_dim=16, decoder_sparse_step=1)),
    "mixtral": lambda: MixtralForCausalLM(MixtralConfig(**SHAPE, num_local_experts=4)),
    "gemma3": lambda: Gemma3ForCausalLM(Gemma3TextConfig(**SHAPE, head_dim=12, sliding_window=512)),
    "granite": lambda: GraniteForCausalLM(GraniteConfig(**SHAPE, attention_multiplier=0.4, residual_multiplier=0.5)),
    "olmo2": lambda: Olmo2ForCausalLM(Olmo2Config(**SHAPE)),
    "phi3": lambda: Phi3ForCausalLM(Phi3Config(**SHAPE)),
    "gpt2": lambda: GPT2LMHeadModel(
        GPT2Config(vocab_size=97, n_positions=256, n_embd=48, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2)
    ),
    "mistral with a window": lambda: MistralForCausalLM(MistralConfig(**SHAPE, sliding_window=16)),
    "gemma2": lambda: Gemma2ForCausalLM(Gemma2Config(**SHAPE, head_dim=12, sliding_window=16)),
}


def network(family="llama"):
    if family in OTHERS:
        torch.manual_seed(0)
        return OTHERS[family]().eval()
    return frozen_network(family).requires_grad_()


class _Hidden(PolicyModule):
    """For heads that logits are not a plain product with: the hidden states alone."""

    def __init__(self, module):
        if module.config.model_type == "gemma2":
            module.config.final_logit_softcapping = None
        super().__init__(module)


def forward(module, packed):
    return _Hidden(module)(packed).hidden_NE


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
@pytest.mark.parametrize("family", [*FAMILIES, "qwen3-moe", "mixtral"])
def test_logits_and_gradients_are_those_of_transformers_line_by_line(family, checkpointing):
    module, packed = network(family), pack_nodes(GROUP)
    policy = PolicyModule(module)
    if checkpointing:
        policy.checkpoint_activations()
    outputs = policy(packed)
    logits = outputs.hidden_NE @ outputs.head_VE.t()
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
    module, packed = exact(network(family)), pack_nodes(nodes)
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
        exact(network("qwen3")),
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
        PolicyModule(module).checkpoint_activations()
    hidden = forward(module, packed)
    none = gradients(module, hidden[packed.gradient_rows :].square().sum())
    assert all(not tensor.any() for tensor in none.values())
    without = pack_nodes([node for node in GROUP if not node.detached])
    actual = gradients(module, forward(module, packed)[: packed.gradient_rows].square().sum())
    expected = gradients(module, forward(module, without).square().sum())
    assert all(torch.equal(actual[name], expected[name]) for name in expected)


@pytest.mark.parametrize("family", ["llama", "qwen3-moe"])
def test_detached_rows_may_go_along_with_the_others(family):
    """As they do on a GPU where they are few."""
    packed, module = pack_nodes(GROUP), PolicyModule(exact(network(family)))
    apart = module(packed)
    together_NE, _ = module._rows(packed.ids_N, packed.positions_N, TreePass(packed.whole_plan))
    torch.testing.assert_close(together_NE, apart.hidden_NE)
    names, parameters = zip(*module.named_parameters(), strict=True)
    live = packed.gradient_rows
    grads = [
        torch.autograd.grad(hidden_NE[:live].square().sum(), parameters, allow_unused=True)
        for hidden_NE in (together_NE, apart.hidden_NE)
    ]
    for name, one, other in zip(names, *grads, strict=True):
        assert (one is None) == (other is None), name
        if one is not None:
            torch.testing.assert_close(one, other, msg=name)


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


@pytest.mark.parametrize("family", OTHERS)
def test_any_decoder_of_transformers_trains(family):
    """Along trees, or line by line where layers see a window that is shorter, or more than a softmax."""
    module, packed = network(family), pack_nodes(GROUP)
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
            PolicyModule(module)


def test_layers_that_are_not_attention_are_read_line_by_line():
    """A tree of rows is no sequence: a state that goes from row to row would leave its line."""
    shape = {"hidden_size": 32, "num_heads": 4, "head_dim": 16, "state_size": 8, "n_groups": 1, "chunk_size": 8}
    torch.manual_seed(0)
    module = Mamba2ForCausalLM(Mamba2Config(vocab_size=97, num_hidden_layers=1, **shape)).eval()
    packed = pack_nodes([TokenNode(ids(6)), TokenNode(ids(4, 1), 0), TokenNode(ids(5, 2), 0)])
    hidden = forward(module, packed)
    for number, rows in enumerate(packed.rows):
        expected = module.base_model(sequence_of(packed, number)[None]).last_hidden_state[
            0, -(rows.stop - rows.start) :
        ]
        torch.testing.assert_close(hidden[rows], expected, atol=1e-5, rtol=1e-5)


def test_used_by_itself_the_network_computes_what_it_always_did():
    module, plain = network("qwen3"), network("qwen3")
    PolicyModule(module)
    lines = torch.tensor([ids(20), ids(20, 5)])
    mask = torch.ones_like(lines)
    mask[1, :4] = 0
    torch.testing.assert_close(
        module(lines, attention_mask=mask).logits[1, 4:], plain(lines, attention_mask=mask).logits[1, 4:]
    )


def test_routers_are_those_of_the_rows_with_a_gradient():
    packed = pack_nodes(GROUP)
    outputs = PolicyModule(network("qwen3-moe"))(packed)
    assert [tuple(logits.shape) for logits in outputs.router_logits] == [(packed.gradient_rows, 4)] * 2
    assert PolicyModule(network("qwen3"))(packed).router_logits == ()


@pytest.mark.parametrize(
    ("family", "checkpointing"), [("llama", False), pytest.param("qwen3", True, marks=pytest.mark.slow)]
)
def test_compiled_layers_share_their_code_and_give_the_same(family, checkpointing):
    """Rows are padded for them, with and without nodes that are forward only."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    plain, compiled = PolicyModule(network(family)), PolicyModule(network(family))
    if checkpointing:
        compiled.checkpoint_activations()
    assert compiled.compile_layers(2048, backend="aot_eager")
    for nodes in (GROUP, [TokenNode(ids(100)), TokenNode(ids(60), 0, at=40)], [TokenNode(ids(200))]):
        packed = pack_nodes(nodes)
        found = []
        for policy in (plain, compiled):
            outputs = policy(packed)
            assert len(outputs.hidden_NE) == len(packed.ids_N)
            loss = weighted(outputs.hidden_NE[: packed.gradient_rows] @ outputs.head_VE.t(), 0)
            found.append((outputs.hidden_NE.detach(), gradients(policy.network, loss)))
        torch.testing.assert_close(found[1][0], found[0][0], atol=1e-5, rtol=0)
        close(found[1][1], found[0][1], 1e-5)
    counted = torch._dynamo.utils.counters
    assert not counted["graph_break"]
    # 256 rows with a gradient, and 128 that are forward only; computed again, a frame of it is counted once more.
    assert counted["stats"]["unique_graphs"] == (3 if checkpointing else 2)


FROZEN = [
    TokenNode(ids(40), frozen=True),
    TokenNode(ids(12, 50), 0, frozen=True),
    TokenNode(ids(5, 70), parent=1),
    TokenNode(ids(6, 80), parent=0, at=30),
    TokenNode(ids(4, 20), parent=2, at=2, detached=True),
]


@pytest.mark.parametrize("checkpointing", [False, True])
def test_frozen_rows_are_read_before_the_others_and_learn_nothing(checkpointing):
    torch._dynamo.reset()
    packed, found = pack_nodes(FROZEN), []
    plain, compiled = PolicyModule(network()), PolicyModule(network())
    if checkpointing:
        compiled.checkpoint_activations()
    assert compiled.compile_layers(2048, backend="aot_eager")
    live = slice(packed.frozen_rows, packed.frozen_rows + packed.gradient_rows)
    for policy in (plain, compiled):
        outputs = policy(packed)
        loss = weighted(outputs.hidden_NE[live] @ outputs.head_VE.t(), 0)
        found.append((outputs.hidden_NE.detach(), gradients(policy.network, loss)))
    torch.testing.assert_close(found[1][0], found[0][0], atol=1e-5, rtol=0)
    close(found[1][1], found[0][1], 1e-5)
    for number in range(len(FROZEN)):
        rows = packed.paths[number]
        torch.testing.assert_close(found[0][0][rows], forward(network(), alone(packed, number)), atol=1e-5, rtol=0)


def test_numbers_of_rows_are_few():
    sizes = {padded_rows(count, 2048) for count in range(1, 16385)}
    assert sorted(sizes) == [128, 256, 512, 1024, *range(2048, 16385, 2048)]
    assert all(padded_rows(count, 2048) >= count for count in range(1, 5000))
