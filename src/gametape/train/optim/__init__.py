"""Optimisers: how a gradient becomes an update."""

from gametape.train.optim.clipping import Norm, clip_norm
from gametape.train.optim.optimizer import Optimizer, make_optimizer
from gametape.train.optim.schedules import Schedule, schedule_factor, warmed_up

__all__ = ["Norm", "Optimizer", "Schedule", "clip_norm", "make_optimizer", "schedule_factor", "warmed_up"]
