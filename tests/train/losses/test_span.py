"""How much each token of a target counts."""

import pytest

torch = pytest.importorskip("torch")

from gametape.train.losses import disagreement_weights, prefix_ratios  # noqa: E402


def choices(*tokens):
    return torch.nn.functional.one_hot(torch.tensor(tokens), 5).float()


def test_weights_fall_after_each_token_where_the_student_left_the_teacher():
    student, teacher = choices(0, 1, 2, 3, 0), choices(0, 2, 2, 4, 0)
    assert disagreement_weights(student, teacher, [0, 1, 2, 3, 0], 0.5).tolist() == [1, 1, 0.5, 0.5, 0.25]
    assert disagreement_weights(student, teacher, [0, 1, 2, 3, 0], 0.0).tolist() == [1, 1, 0, 0, 0]
    # The second token was sampled as the teacher would have it: what follows is a prefix it knows.
    assert disagreement_weights(student, teacher, [0, 2, 2, 3, 0], 0.5).tolist() == [1, 1, 1, 1, 0.5]


def test_only_actions_count():
    student, teacher = choices(0, 1, 2, 3, 0), choices(0, 2, 2, 4, 0)
    weights = disagreement_weights(student, teacher, [0, 1, 2, 3, 0], 0.5, [1, 0, 1, 1, 1])
    assert weights.tolist() == [1, 0, 1, 1, 0.5]


def test_ratios_are_of_what_came_before():
    logp = torch.tensor([-1.0, -2.0, -1.0, -3.0], requires_grad=True)
    ratios = prefix_ratios(logp, torch.tensor([-1.5, -1.0, -3.0, 0.0]))
    expected = torch.tensor([0.0, 0.5, -0.5, 1.5]).exp().clamp(max=2.0)
    torch.testing.assert_close(ratios, expected)
    assert not ratios.requires_grad
