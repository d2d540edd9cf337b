"""How much each token of a target's span counts."""

import torch
from torch import Tensor

from gametape.train.losses.divergence import divergence
from gametape.train.losses.tokens import FARTHEST, Numbers, as_floats, as_mask


def disagreement_weights(
    student_logits_SV: Numbers,
    teacher_logits_SV: Numbers,
    ids_S: Numbers,
    gamma: float = 0.5,
    action_S: Numbers | None = None,
) -> Tensor:
    """1 up to the first token where the student left the teacher, and gamma times less after each such token.

    From there on the teacher reads a prefix that it would not have written. The student has left the teacher where
    their likeliest tokens differ and the sampled one, `ids_S`, is not the teacher's. With `action_S`, tokens outside it
    neither count nor are counted.
    """
    if not 0 <= gamma <= 1:
        raise ValueError(f"gamma lies between 0 and 1; this one is {gamma}")
    student_SV, teacher_SV = as_floats(student_logits_SV), as_floats(teacher_logits_SV)
    ids: Tensor = torch.as_tensor(ids_S, device=student_SV.device)
    choice_S = teacher_SV.argmax(-1)
    left_S = (student_SV.argmax(-1) != choice_S) & (ids != choice_S)
    action: Tensor = torch.ones_like(left_S) if action_S is None else as_mask(action_S, left_S)
    left_S = left_S & action
    before_S = left_S.cumsum(-1) - left_S.long()
    return torch.where(action, torch.pow(gamma, before_S.to(student_SV.dtype)), 0.0)


def prefix_ratios(logp_S: Numbers, behaviour_logp_S: Numbers, cap: float = 2.0) -> Tensor:
    """At each token the importance ratio of the span's tokens before it, at most `cap`; 1 at the first.

    The token itself is left out: the divergence at its place is already a mean over what could stand there.
    """
    if not cap > 0:
        raise ValueError(f"the cap of importance ratios is above 0; this one is {cap}")
    logp_S = as_floats(logp_S).detach()
    gap_S = logp_S - as_floats(behaviour_logp_S).to(logp_S).detach()
    return (gap_S.cumsum(-1) - gap_S).clamp(max=FARTHEST).exp().clamp(max=cap)


def effect_weights(hinted_logits_SV: Numbers, plain_logits_SV: Numbers) -> Tensor:
    """How much a hint changes its reader's choice at each token: 0 where not at all, near 1 from a few nats on.

    A teacher whose weights are not the student's disagrees with it for reasons of its own. Without this they would be
    distilled along with the hint, and pull the student back to what the teacher was.
    """
    return -torch.expm1(-divergence(plain_logits_SV, hinted_logits_SV, beta=1.0))
