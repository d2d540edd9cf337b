"""Feedback of people on an agent's work, as recorded in `extra.feedback` of a trajectory."""

from collections.abc import Mapping
from typing import Any, Literal

from gametape.core.base_model import Fraction, StrictModel

FeedbackKind = Literal["kept", "reverted", "accepted", "rejected", "survived"]
_GOOD = frozenset(("kept", "accepted"))


class Feedback(StrictModel):
    """One piece of feedback. `survived` comes from a repository's history: the share of added lines still there."""

    kind: FeedbackKind
    time: str
    note: str = ""
    share: Fraction | None = None
    commit: str | None = None

    @property
    def value(self) -> float:
        """From -1 (all of it undone) to 1."""
        if self.share is not None:
            return 2 * self.share - 1
        return 1.0 if self.kind in _GOOD else -1.0


def parse_feedback(extra: Mapping[str, Any] | None) -> list[Feedback]:
    """The recorded feedback, oldest first. Raises `ValueError` for anything else."""
    entries = (extra or {}).get("feedback") or []
    if not isinstance(entries, list):
        raise ValueError("extra.feedback: a list")
    return [Feedback.model_validate(entry) for entry in entries]


def add_feedback_reward(reward: float, extra: Mapping[str, Any] | None, weight: float) -> float:
    """The reward plus the weighted mean of the feedback, between -1 and 1. It is unchanged without feedback, and at -1,
    the reward of a proven hack."""
    feedback = parse_feedback(extra)
    if not feedback or reward == -1.0:
        return reward
    return max(-1.0, min(1.0, reward + weight * sum(entry.value for entry in feedback) / len(feedback)))
