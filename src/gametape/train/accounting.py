"""What a run has taken: tokens of every kind, all of them, and the operations that they stand for."""

from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass
class Tokens:
    """`forwarded` is what engine and trainer read, with a gradient or without. `coach` is in none of the others."""

    generated: int = 0
    forwarded: int = 0
    backpropagated: int = 0
    coach: int = 0

    def plain(self) -> dict[str, int]:
        return asdict(self)

    @classmethod
    def from_plain(cls, told: dict[str, Any]) -> Self:
        return cls(**told)

    def flops(self, parameters: int) -> int:
        """2N for a token that is forwarded or generated, 4N more for one back-propagated. Attention is left out:
        at the lengths of tiny worlds it is a few per cent."""
        passed = self.generated + self.forwarded + self.coach
        return parameters * (2 * passed + 4 * self.backpropagated)
