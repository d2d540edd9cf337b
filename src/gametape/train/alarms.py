"""What goes wrong while training before the reward shows it, and what to do about it. Nothing here stops a run."""

from collections.abc import Iterator
from dataclasses import dataclass

from gametape.core.config import AlarmConfig


@dataclass(frozen=True)
class Health:
    """What is looked at after an update. None where it was not measured."""

    entropy: float | None = None
    length: float | None = None
    kl_to_start: float | None = None
    hack_rate: float = 0.0
    zero_variance: float = 0.0
    mismatch: float | None = None
    saturated: bool = False


@dataclass(frozen=True)
class Alarm:
    name: str
    value: float
    limit: float
    advice: str


class Alarms:
    """Says an alarm when it begins, not in every update that it lasts."""

    def __init__(self, limits: AlarmConfig, first_length: float | None = None) -> None:
        self._limits = limits
        self.first_length = first_length
        self.ringing: set[str] = set()

    def look(self, health: Health) -> list[Alarm]:
        if self.first_length is None:
            self.first_length = health.length
        found = {alarm.name: alarm for alarm in self._found(health)}
        new = [alarm for name, alarm in found.items() if name not in self.ringing]
        self.ringing = set(found)
        return new

    def _found(self, health: Health) -> Iterator[Alarm]:
        limits = self._limits
        if health.entropy is not None and health.entropy < limits.entropy_low:
            advice = "the policy no longer explores: lower the learning rate, or raise rl.clip_high"
            yield Alarm("entropy", health.entropy, limits.entropy_low, advice)
        if health.length and self.first_length:
            drift = max(health.length / self.first_length, self.first_length / health.length)
            if drift > limits.length_drift:
                advice = "turns grow or shrink away from the start: look at some rollouts before you train on"
                yield Alarm("length", drift, limits.length_drift, advice)
        if health.kl_to_start is not None and health.kl_to_start > limits.kl_to_start:
            advice = "the policy is far from where it began: lower the learning rate or begin again from a checkpoint"
            yield Alarm("kl_to_start", health.kl_to_start, limits.kl_to_start, advice)
        if health.hack_rate > limits.hack_rate:
            advice = "rollouts attack their verifier: run gametape audit on them and close the hole first"
            yield Alarm("hack_rate", health.hack_rate, limits.hack_rate, advice)
        if health.zero_variance > limits.zero_variance:
            advice = "hardly a group has a signal: take easier or harder tasks, larger groups, or hints (arm rlvr_ttf)"
            yield Alarm("zero_variance", health.zero_variance, limits.zero_variance, advice)
        if health.mismatch is not None and health.mismatch > limits.mismatch:
            advice = "sampler and trainer disagree about the same weights: check precision and the published version"
            yield Alarm("mismatch", health.mismatch, limits.mismatch, advice)
        if health.saturated:
            yield Alarm("saturated", 1.0, 1.0, "every task is learned already: give harder ones")
