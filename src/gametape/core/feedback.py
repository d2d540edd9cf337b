"""What people did with an agent's work, as it stands in `extra.feedback` of a trajectory."""

from collections.abc import Mapping
from typing import Any, Literal

from gametape.core.base_model import Fraction, StrictModel

FeedbackKind = Literal["kept", "reverted", "accepted", "rejected", "survived"]
_GOOD = frozenset(("kept", "accepted"))


class Feedback(StrictModel):
    """One word about it. `survived` comes from a repository's history: the share of added lines still there."""

    kind: FeedbackKind
    time: str
    note: str = ""
    share: Fraction | None = None
    commit: str | None = None

    @property
    def value(self) -> float:
        """From -1, all of it undone, to 1."""
        if self.share is not None:
            return 2 * self.share - 1
        return 1.0 if self.kind in _GOOD else -1.0


def parse_feedback(extra: Mapping[str, Any] | None) -> list[Feedback]:
    """All that was said, the oldest first. Raises ValueError for what is no feedback."""
    told = (extra or {}).get("feedback") or []
    if not isinstance(told, list):
        raise ValueError("extra.feedback: a list")
    return [Feedback.model_validate(one) for one in told]


def add_feedback_reward(reward: float, extra: Mapping[str, Any] | None, weight: float) -> float:
    """A reward with people's word added, the mean of all they said; what nobody spoke about stays as it is, and so
    does what something proven stands against (-1)."""
    told = parse_feedback(extra)
    if not told or reward == -1.0:
        return reward
    return max(-1.0, min(1.0, reward + weight * sum(one.value for one in told) / len(told)))
