"""What to do about an alarm, in the words of the arm and the settings that the run has."""

from dataclasses import dataclass
from typing import Self

from gametape.core.config import RunConfig
from gametape.train.algorithms.base import Algorithm
from gametape.train.algorithms.ttf import Ttf

_LOWER_RATE = "lower optim.learning_rate"
_ADVICE = {
    "entropy": f"the policy no longer explores: {_LOWER_RATE}, or raise rl.temperature",
    "entropy_spike": f"the policy comes apart: {_LOWER_RATE}, and begin again from an earlier checkpoint",
    "length": "turns grow or shrink away from the start: look at some rollouts before you train on",
    "kl_to_start": f"the policy is far from where it began: {_LOWER_RATE}, or begin again from a checkpoint",
    "forgotten": f"what went well becomes unlikely: {_LOWER_RATE}, or go back to an earlier checkpoint",
    "hack_rate": "rollouts attack their verifier: run gametape audit on them and close the hole first",
    "hint_leak": "hints come back in what the policy says unasked: lower ttf.weight, or ttf.annotated_per_group",
    "saturated": "every task is learned already: give harder ones",
}
"""What is the same in every arm."""


@dataclass(frozen=True)
class ArmTraits:
    """What alarms have to know about an algorithm."""

    config: RunConfig
    samples_policy: bool = True
    """Its rollouts are the policy's own, not demonstrations."""
    compares_rollouts: bool = True
    distils_hints: bool = False
    gates_hints: bool = False

    @classmethod
    def of_algorithm(cls, algorithm: Algorithm) -> Self:
        return cls(
            algorithm.config,
            algorithm.samples_policy,
            algorithm.compares_rollouts,
            isinstance(algorithm, Ttf),
            isinstance(algorithm, Ttf) and algorithm.gated,
        )

    def advice(self, name: str, detail: str = "") -> str:
        """What an alarm of this name means in this arm, and what to do. `detail` is what the alarm was raised for."""
        own = {
            "lost": lambda: (
                f"the machinery fails under the rollouts (last: {detail or 'unknown'}): run gametape doctor"
            ),
            "mismatch": self._disagreement,
            "zero_variance": lambda: self._without_signal(detail),
            "teacher": self._weak_teacher,
            "ordinary": self._worse_elsewhere,
            "hinted": self._hints_unread,
        }
        return own[name]() if name in own else _ADVICE[name]

    def _disagreement(self) -> str:
        where = "precision and the published version" if self.config.rl.asynchronous else "the precision"
        return f"sampler and trainer disagree about the same weights: check {where}"

    def _without_signal(self, kind: str) -> str:
        if kind == "all_pass":
            return "hardly a group has a signal, because nearly all rollouts pass: give harder tasks"
        if kind == "all_fail" and self.distils_hints:
            return (
                "hardly a group has a signal, because nearly all rollouts fail and the coach has no hint for them: "
                "take easier tasks, or larger groups (rl.group_size)"
            )
        if kind == "all_fail":
            hints = ", or hints (arm rlvr_ttf)" if self.config.arm == "rlvr" else ""
            larger = "larger groups (rl.group_size)"
            choices = f"easier tasks, {larger}{hints}" if hints else f"easier tasks, or {larger}"
            return f"hardly a group has a signal, because nearly all rollouts fail: take {choices}"
        return "hardly a group has a signal: take tasks that are solved now and then, or larger groups (rl.group_size)"

    def _weak_teacher(self) -> str:
        weak = "the hinted teacher is no better than its student"
        if self.config.ttf.control != "none":
            return f'{weak}, which is what ttf.control = "{self.config.ttf.control}" is for'
        if self.gates_hints:
            return f"{weak}, although hints pass their gates: raise gates.delta or gates.min_posterior"
        return f"{weak}: gate the hints (arm rlvr_ttf_gated)"

    def _worse_elsewhere(self) -> str:
        if self.distils_hints:
            return "turns that were no target get worse: raise ttf.anchor or lower ttf.weight"
        return f"turns that no rule bears on get worse: {_LOWER_RATE}"

    def _hints_unread(self) -> str:
        forgets = "the policy forgets to read hints"
        if not self.distils_hints:
            return f"{forgets}: nothing in this arm needs them, but an arm with hints should not begin from here"
        if self.config.ttf.teacher == "start":
            return f"{forgets}: its teacher is the start, which still reads them"
        return f'{forgets}, and its teacher with it: take ttf.teacher = "start"'
