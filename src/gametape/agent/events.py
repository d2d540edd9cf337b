"""Events of a turn: what went wrong in it or was forbidden. They are recorded on its step."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

RolloutEventKind = Literal[
    "malformed_call",
    "unknown_tool",
    "wrong_arguments",
    "too_many_calls",
    "no_call",
    "cut_off",
    "call_limit",
    "constraint",
    "tool_timeout",
    "tool_crash",
    "sandbox_death",
    "after_finish",
    "engine",
    "compaction",
    "context_full",
    "checkpoint_dropped",
    "escalation",
]


@dataclass(frozen=True)
class RolloutEvent:
    """`detail` is one line for people; what the model was told is in the observation."""

    kind: RolloutEventKind
    detail: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
