"""How a run is observed while it learns: evaluations, checkpoints, alarms and monitors."""

import re
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator

from gametape.core.base_model import Fraction
from gametape.core.config_section import AtLeastOne, AtLeastZero, ConfigSection, Natural, Positive


class IntervalUnit(StrEnum):
    EPISODES = "episodes"
    UPDATES = "updates"
    MINUTES = "minutes"


def _is_an_interval(text: str) -> str:
    if not re.fullmatch(rf"[1-9]\d* ({'|'.join(IntervalUnit)})", text):
        raise ValueError('a number of episodes, or a text such as "20 updates" or "10 minutes"')
    return text


EvalInterval = Annotated[str, AfterValidator(_is_an_interval)]


class EvalConfig(ConfigSection):
    """Held-out success while training."""

    every: Natural | EvalInterval = 512
    """Episodes between evaluations, or a text such as "20 updates" or "10 minutes"; 0 evaluates only before and after
    the run."""
    episodes: AtLeastOne = 256
    """For tiny policies; 64 for others."""
    slice: AtLeastOne = 32
    """Episodes of an evaluation that are ordered between two updates. They are played beside the rollouts of training,
    and no update waits for them. Reproducible runs evaluate all at once."""
    temperature: AtLeastZero = 1.0
    forgetting_probe_size: Natural = 32
    """Successes of the best evaluation that are scored again after every update, to see what is forgotten; 0 for none.
    """
    stop_at: Fraction | None = None
    """Stop as soon as held-out success is this high."""

    @property
    def interval(self) -> tuple[int, IntervalUnit]:
        """How much of what lies between two evaluations."""
        if isinstance(self.every, int):
            return self.every, IntervalUnit.EPISODES
        count, unit = self.every.split()
        return int(count), IntervalUnit(unit)


class CheckpointConfig(ConfigSection):
    every: AtLeastOne = 5
    """Updates between checkpoints. A run that is killed resumes at the last one, with the same numbers."""
    keep: AtLeastOne = 2


class AlarmConfig(ConfigSection):
    """Thresholds of the alarms. None of them stops a run."""

    entropy_low: AtLeastZero = 0.02
    """Nats per sampled token."""
    entropy_high: Positive = 3.0
    infra_error_rate: Fraction = 0.2
    """The share of rollouts with an infrastructure error."""
    ordinary_drop: Fraction = 0.02
    """Loss of held-out accuracy at turns that no rule bears on; below this it is noise of a few hundred episodes."""
    hinted_drop: Fraction = 0.1
    """Loss of held-out accuracy where a hint states the rule."""
    hint_leak: Fraction = 0.01
    """The share of sampled turns that repeat a hint."""
    teacher_gain: float = 0.0
    """Nats by which hints make what was done at their targets less likely, over an update: a teacher that stays at or
    below this is no better than its student."""
    forgotten: Fraction = 0.01
    """Points of the best evaluation's success that the policy would no longer have, by the likelihood of what it was
    sure of in it."""
    length_drift: Positive = 2.0
    """Times shorter or longer than at the start."""
    kl_to_start: Positive = 2.0
    """Nats per sampled token."""
    hack_rate: Fraction = 0.02
    zero_variance: Fraction = 0.9
    """The share of groups without a signal."""
    logprob_mismatch: Positive = 0.05
    """Mean difference between the trainer's and the sampler's log-probabilities, under the same weights."""


class WatchConfig(ConfigSection):
    """The monitors of the policy's behaviour; their alarms are among the others."""

    stop: bool = False
    """End the run when alarms of the monitors have come back twice."""
