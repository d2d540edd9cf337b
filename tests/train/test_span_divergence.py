"""What is read of targets a few rows at a time is what whole tables of logits give, and never more rows are there."""

import pytest

torch = pytest.importorskip("torch")

from gametape.train import span_divergence  # noqa: E402
from gametape.train.losses import disagreement_weights, discounts_after, divergence, effect_weights  # noqa: E402
from gametape.train.span_divergence import TeacherRows, read_spans  # noqa: E402

TOKENS, WIDTH, VOCABULARY, BETA, TEMPERATURE = 23, 6, 41, 0.7, 1.3


def ends_of():
    rng = torch.Generator().manual_seed(3)
    sizes = [(TOKENS, WIDTH), (VOCABULARY, WIDTH), (TOKENS, WIDTH), (TOKENS, WIDTH), (VOCABULARY, WIDTH)]
    student, head, hinted, plain, teacher = (torch.randn(size, generator=rng, dtype=torch.float64) for size in sizes)
    ids = torch.randint(0, VOCABULARY, (TOKENS,), generator=rng)
    return student.requires_grad_(), head.requires_grad_(), TeacherRows(hinted, plain, teacher), ids


def tables_of(student, head, teacher):
    rows = [(student, head), (teacher.hinted_TE, teacher.head_VE), (teacher.plain_TE, teacher.head_VE)]
    return [hidden @ matrix.t() / TEMPERATURE for hidden, matrix in rows]


@pytest.mark.parametrize("chunk", [1, 5, TOKENS, 100])
def test_values_and_gradients_are_those_of_whole_tables(chunk):
    student, head, teacher, ids = ends_of()
    reading = read_spans(student, head, teacher, ids, BETA, TEMPERATURE, chunk)
    student_TV, hinted_TV, plain_TV = tables_of(student, head, teacher)
    expected = divergence(student_TV, hinted_TV, BETA)
    torch.testing.assert_close(reading.divergence_T, expected)
    torch.testing.assert_close(reading.effect_T, effect_weights(hinted_TV, plain_TV))
    chosen = [table.log_softmax(-1).gather(1, ids[:, None])[:, 0] for table in (student_TV, hinted_TV)]
    torch.testing.assert_close([reading.student_T, reading.teacher_T], [one.detach() for one in chosen])
    weights = disagreement_weights(student_TV, hinted_TV, ids, 0.5)
    torch.testing.assert_close(discounts_after(reading.left_T, 0.5, weights.dtype), weights)
    torch.testing.assert_close(reading.teacher_probs_TK, hinted_TV.softmax(-1).topk(5).values)
    pull = torch.linspace(-1, 2, TOKENS, dtype=torch.float64)
    found = torch.autograd.grad(reading.divergence_T, (student, head), pull)
    torch.testing.assert_close(found, torch.autograd.grad(expected, (student, head), pull))


def test_there_are_never_more_logits_than_a_chunk_has(monkeypatch):
    """However many tokens the targets have."""
    sizes = []

    def counted(hidden, head, temperature):
        sizes.append(len(hidden) * len(head))
        return wide_logits(hidden, head, temperature)

    wide_logits = span_divergence.wide_logits
    monkeypatch.setattr(span_divergence, "wide_logits", counted)
    monkeypatch.setitem(span_divergence.LOGITS_AT_A_TIME, "cpu", 8 * 4 * VOCABULARY)
    student, head, teacher, ids = ends_of()
    read_spans(student, head, teacher, ids, BETA).divergence_T.sum().backward()
    assert max(sizes) == 4 * VOCABULARY
    kept = [tensor.numel() for tensor in read_spans(student, head, teacher, ids, BETA)[0].grad_fn.saved_tensors]
    assert max(kept) <= VOCABULARY * WIDTH
