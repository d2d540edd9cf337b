"""The limits of a rollout, its usage so far, and the exception that ends it."""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from gametape.core.base_model import StrictModel
from gametape.core.errors import GametapeError, MissingDependency
from gametape.core.messages import TokenUsage
from gametape.core.trajectory import Outcome
from gametape.engines.errors import EngineError

Positive = Annotated[float, Field(gt=0)]
AtLeastOne = Annotated[int, Field(ge=1)]
USELESS_TURNS = "turns in a row without a call that could be run"
_KEY_REFUSED = (401, 403)
"""What servers answer to a key that is missing or not valid."""


class RolloutEnd(Exception):
    """Ends the rollout. Carries how and why it ended."""

    def __init__(self, outcome: Outcome | None, reason: str, exit_code: int = 1) -> None:
        super().__init__(reason)
        self.outcome = outcome
        """None where the agent finished and the verifier decides."""
        self.reason = reason
        self.exit_code = exit_code
        """For the outcome `error`: 3 where something is missing here (a key, a server), else 1."""

    @property
    def overlong(self) -> bool:
        return is_overlong(self.outcome, self.reason)

    @classmethod
    def from_error(cls, error: GametapeError) -> "RolloutEnd":
        return cls("error", str(error), 3 if _lacks_something(error) else 1)


def is_overlong(outcome: str | None, reason: str) -> bool:
    """Whether a limit ended work that was under way. An agent that makes no usable call has failed by itself: nothing
    was cut short."""
    return outcome == "limit" and not reason.endswith(USELESS_TURNS)


def _lacks_something(error: GametapeError) -> bool:
    """Whether the error is about this machine or its keys: a server out of reach, a key that was refused."""
    if isinstance(error, EngineError):
        return error.kind == "unreachable" or error.status in _KEY_REFUSED
    return isinstance(error, MissingDependency)


class RolloutLimits(StrictModel):
    """The budgets of a rollout and the bounds of one turn; every verb takes its defaults from here.

    None is no limit. Reaching a limit ends the rollout before the next query; `calls` only refuses further calls.
    """

    turns: AtLeastOne = 50
    turn_tokens: AtLeastOne = 16_384
    """New tokens in one turn, as far as a quarter of the model's window allows them."""
    tokens: AtLeastOne | None = None
    """Prompt and completion tokens in all, as a server would bill them."""
    cost_usd: Positive | None = None
    wall_seconds: Positive | None = 3600.0
    tool_seconds: Positive = 600.0
    """Seconds that one tool call may ask for."""
    all_tools_seconds: Positive | None = None
    calls: dict[str, AtLeastOne] = Field(default_factory=dict)
    """The number of calls allowed, by tool."""
    calls_per_turn: AtLeastOne = 32
    useless_turns: AtLeastOne = 8
    """Turns in a row without one call that could be run."""
    sandbox_deaths: AtLeastOne = 3
    output_characters: Annotated[int, Field(ge=200)] | None = None
    """Characters of one tool's output; more is cut in the middle. None goes by the model's window."""
    context_tokens: AtLeastOne | None = None
    """Compact before the conversation is longer than this, even if the model's window is larger."""


@dataclass
class RolloutUsage:
    """What a rollout has used so far."""

    turns: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost_usd: float = 0.0
    tool_seconds: float = 0.0
    cpu_seconds: float = 0.0
    calls: Counter[str] = field(default_factory=Counter)
    useless_turns: int = 0
    sandbox_deaths: int = 0
    cut_off: int = 0
    """Turns that the limit of tokens cut off."""
    earlier_seconds: float = 0.0
    """Wall time before this process took over."""
    began: float = field(default_factory=time.monotonic)

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    @property
    def seconds(self) -> float:
        return self.earlier_seconds + time.monotonic() - self.began

    def add(self, usage: TokenUsage) -> None:
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self.cached_tokens += usage.cached_tokens
        self.cost_usd += usage.cost_usd

    def check(self, limits: RolloutLimits) -> None:
        """Raise `RolloutEnd` if a limit is reached."""
        used: tuple[tuple[str, float, float | None], ...] = (
            ("turns", self.turns, limits.turns),
            ("tokens", self.tokens, limits.tokens),
            ("dollars", self.cost_usd, limits.cost_usd),
            ("seconds", self.seconds, limits.wall_seconds),
            ("seconds of tools", self.tool_seconds, limits.all_tools_seconds),
            (USELESS_TURNS, self.useless_turns, limits.useless_turns),
        )
        for what, amount, limit in used:
            if limit is not None and amount >= limit:
                raise RolloutEnd("limit", f"{limit:g} {what}")


def cut_off_warnings(usage: RolloutUsage, turn_tokens: int, asked: int) -> tuple[str, ...]:
    """What a person should know about turns that were cut off at `turn_tokens`, where `asked` were asked for."""
    if not usage.cut_off:
        return ()
    turns = "1 turn was" if usage.cut_off == 1 else f"{usage.cut_off} turns were"
    why = "--max-turn-tokens" if turn_tokens >= asked else "a quarter of the model's window"
    return (f"{turns} cut off at {turn_tokens:,} tokens ({why})",)
