"""What a run has taken: tokens of every kind, all of them, and the operations that they stand for."""

from dataclasses import asdict, dataclass, field
from typing import Any, Self

from gametape.train.rollouts import PromptRequest, RolloutGroup


@dataclass
class TokenCounts:
    """`forwarded` is what engine and trainer read, with a gradient or without. `coach` is in none of the others."""

    generated: int = 0
    forwarded: int = 0
    backpropagated: int = 0
    coach: int = 0

    def to_dict(self) -> dict[str, int]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(**data)

    def flops(self, parameters: int) -> int:
        """2N for a token that is forwarded or generated, 4N more for one back-propagated. Attention is left out:
        at the lengths of tiny worlds it is a few per cent."""
        passed = self.generated + self.forwarded + self.coach
        return parameters * (2 * passed + 4 * self.backpropagated)


@dataclass
class TrainingProgress:
    """`step` counts batches, `version` those that changed the weights, `draws` the prompts that were ordered."""

    step: int = 0
    version: int = 0
    requests: int = 0
    episodes: int = 0
    dropped: int = 0
    """Rollouts that were too old when their turn came."""
    staleness: dict[int, int] = field(default_factory=dict)
    """By age in versions: rollouts that were learned from."""
    tokens: TokenCounts = field(default_factory=TokenCounts)
    seconds: float = 0.0
    scores: list[dict[str, Any]] = field(default_factory=list)
    """Held-out scores, each with `episodes_so_far`."""
    ordered: list[PromptRequest] = field(default_factory=list)
    """Under way, and to be ordered again after a restart."""
    waiting: list[RolloutGroup] = field(default_factory=list)
    """Finished, and not learned from yet."""

    def to_dict(self) -> dict[str, Any]:
        told = dict(vars(self))
        return told | {
            "tokens": self.tokens.to_dict(),
            "staleness": sorted(self.staleness.items()),
            "ordered": [vars(draw) for draw in self.ordered],
            "waiting": [group.to_dict() for group in self.waiting],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        return cls(
            **data
            | {
                "tokens": TokenCounts.from_dict(data["tokens"]),
                "staleness": {int(age): count for age, count in data["staleness"]},
                "ordered": [PromptRequest(**draw) for draw in data["ordered"]],
                "waiting": [RolloutGroup.from_dict(group) for group in data["waiting"]],
            }
        )

    def episodes_to(self, success: float) -> int | None:
        """How many episodes it took until held-out success was this high; None where it never was."""
        return next((one["episodes_so_far"] for one in self.scores if one["success"] >= success), None)
