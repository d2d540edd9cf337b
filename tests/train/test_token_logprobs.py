"""Log-probs in chunks are those of the whole, in value, gradient and memory."""

import pytest

torch = pytest.importorskip("torch")

from gametape.train.token_logprobs import even_chunk, logit_gradients, span_logits, token_logprobs  # noqa: E402

from .trees import Largest  # noqa: E402

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
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


@needs_cuda
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


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_cuda)])
def test_logits_of_half_precision_are_not_rounded(device):
    """Rows whose logits differ by less than 16 bits can say at their size."""
    hidden = torch.tensor([[256.0, 1.0]], dtype=torch.bfloat16, device=device, requires_grad=True)
    head = torch.tensor([[1.0, 0.0], [1.0, 0.5]], dtype=torch.bfloat16, device=device, requires_grad=True)
    logits = span_logits(hidden, head)
    assert logits.tolist() == [[256.0, 256.5]]
    logp, _ = token_logprobs(hidden, head, torch.tensor([1], device=device))
    assert float(logp.detach()) == pytest.approx(float(torch.tensor([0.0, 0.5]).log_softmax(0)[1]), abs=1e-6)
    logits.sum().backward()
    assert hidden.grad.tolist() == [[2.0, 0.5]]
    assert head.grad.tolist() == [[256.0, 1.0], [256.0, 1.0]]


def test_the_compiled_gradient_is_that_of_the_plain_way():
    torch.manual_seed(0)
    logits, targets, pull = torch.randn(7, 31, dtype=torch.float64), torch.randint(31, (7,)), torch.randn(7).double()
    logits.requires_grad_()
    logp = logits.log_softmax(-1).gather(1, targets[:, None])[:, 0]
    (expected,) = torch.autograd.grad((logp * pull).sum(), logits)
    found = logit_gradients(logits.detach(), targets, logits.detach().logsumexp(-1), pull, torch.float64)
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)


def test_chunks_have_few_sizes_and_hold_all_rows():
    for most in (1, 5, 883, 5461):
        sizes = set()
        for count in range(1, 40_000, 7):
            size = even_chunk(count, most)
            sizes.add(size)
            assert size <= most
            assert -(-count // size) == max(1, -(-count // most)), (count, most)
        assert len(sizes) <= 6
