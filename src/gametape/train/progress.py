"""Everything about a run that changes while it runs and is not a tensor."""

from dataclasses import dataclass, field
from typing import Any, Self

from gametape.train.accounting import Tokens
from gametape.train.rolled import Draw, Group


@dataclass
class Progress:
    """`step` counts batches, `version` those that changed the weights, `draws` the prompts that were ordered."""

    step: int = 0
    version: int = 0
    draws: int = 0
    episodes: int = 0
    dropped: int = 0
    """Rollouts that were too old when their turn came."""
    staleness: dict[int, int] = field(default_factory=dict)
    """By age in versions: rollouts that were learned from."""
    tokens: Tokens = field(default_factory=Tokens)
    seconds: float = 0.0
    scores: list[dict[str, Any]] = field(default_factory=list)
    """Held-out scores, each with `episodes_so_far`."""
    ordered: list[Draw] = field(default_factory=list)
    """Under way, and to be ordered again after a restart."""
    waiting: list[Group] = field(default_factory=list)
    """Finished, and not learned from yet."""

    def plain(self) -> dict[str, Any]:
        told = dict(vars(self))
        return told | {
            "tokens": self.tokens.plain(),
            "staleness": sorted(self.staleness.items()),
            "ordered": [vars(draw) for draw in self.ordered],
            "waiting": [group.plain() for group in self.waiting],
        }

    @classmethod
    def from_plain(cls, told: dict[str, Any]) -> Self:
        return cls(
            **told
            | {
                "tokens": Tokens.from_plain(told["tokens"]),
                "staleness": {int(age): count for age, count in told["staleness"]},
                "ordered": [Draw(**draw) for draw in told["ordered"]],
                "waiting": [Group.from_plain(group) for group in told["waiting"]],
            }
        )

    def episodes_to(self, success: float) -> int | None:
        """How many episodes it took until held-out success was this high; None where it never was."""
        return next((one["episodes_so_far"] for one in self.scores if one["success"] >= success), None)
