"""Targeted textual feedback: at one turn, learn what the policy itself would do had it read the hint."""

from torch import Tensor

from gametape.train.losses.divergence import divergence
from gametape.train.losses.tokens import Numbers, as_floats


def ttf_loss(
    student_logits_SV: Numbers,
    teacher_logits_SV: Numbers,
    weights_S: Numbers = 1.0,
    ratio_S: Numbers = 1.0,
    beta: float = 0.7,
    kappa: float = 2.0,
) -> Tensor:
    """The sum over a span's S tokens of weight * ratio * D * min(1, kappa / D), with D the `divergence` at a token.

    Student and teacher score the same ids, the teacher after the hint. Weights (`disagreement_weights`), ratios
    (`prefix_ratios`), the teacher and the cap's factor are constants: the gradient goes to the student's logits alone.
    The cap scales a token's gradient down and never to nothing, because D is large exactly where the hint matters. The
    caller weighs spans and divides by a constant.
    """
    if not kappa > 0:
        raise ValueError(f"kappa is above 0; this one is {kappa}")
    divergence_S = divergence(student_logits_SV, teacher_logits_SV, beta)
    factor_S = kappa / divergence_S.detach().clamp(min=kappa)
    for constants in (weights_S, ratio_S):
        factor_S = factor_S * as_floats(constants).to(divergence_S).detach().expand_as(divergence_S)
    return (factor_S * divergence_S).sum()
