"""The limits of a rollout, its usage so far, and the exception that ends it."""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import Field

from gametape.core.base_model import StrictModel
from gametape.core.messages import TokenUsage
from gametape.core.trajectory import Outcome

Positive = Annotated[float, Field(gt=0)]
AtLeastOne = Annotated[int, Field(ge=1)]


class RolloutEnd(Exception):
    """Ends the rollout. Carries how and why it ended."""

    def __init__(self, outcome: Outcome | None, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome
        """None where the agent finished and the verifier decides."""
        self.reason = reason


class RolloutLimits(StrictModel):
    """None is no limit. Reaching a limit ends the rollout before the next query; `calls` only refuses further calls."""

    turns: AtLeastOne = 50
    turn_tokens: AtLeastOne = 2048
    """New tokens in one turn."""
    tokens: AtLeastOne | None = None
    """Prompt and completion tokens in all, as a server would bill them."""
    cost_usd: Positive | None = None
    wall_seconds: Positive | None = 3600.0
    tool_seconds: Positive = 120.0
    """Seconds for one tool call."""
    all_tools_seconds: Positive | None = None
    calls: dict[str, AtLeastOne] = Field(default_factory=dict)
    """The number of calls allowed, by tool."""
    calls_per_turn: AtLeastOne = 8
    useless_turns: AtLeastOne = 8
    """Turns in a row without one call that could be run."""
    sandbox_deaths: AtLeastOne = 3
    output_characters: Annotated[int, Field(ge=200)] = 8000
    """Characters of one tool's output; more is cut in the middle."""
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
            ("turns in a row without a call that could be run", self.useless_turns, limits.useless_turns),
        )
        for what, amount, limit in used:
            if limit is not None and amount >= limit:
                raise RolloutEnd("limit", f"{limit:g} {what}")
