"""Optimisers: how a gradient becomes an update."""

from gametape.train.optim.grad_clip import GradientNorm, clip_grad_norm
from gametape.train.optim.optimizer import Optimizer, Schedule, make_optimizer, schedule_factor, warmup_factor

__all__ = [
    "GradientNorm",
    "Optimizer",
    "Schedule",
    "clip_grad_norm",
    "make_optimizer",
    "schedule_factor",
    "warmup_factor",
]
