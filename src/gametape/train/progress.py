"""How far a run has come: counters, held-out scores, what is under way, and the tokens that it took."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from pydantic import TypeAdapter

from gametape.core.observation_config import EvalConfig, IntervalUnit
from gametape.train.activity import ActivityTimes
from gametape.train.rollouts import PromptRequest, RolloutGroup, with_current_state_keys


@dataclass
class TokenCounts:
    """`forwarded` is what engine and trainer read, with a gradient or without. `coach` is in none of the others."""

    generated: int = 0
    forwarded: int = 0
    backpropagated: int = 0
    coach: int = 0

    def to_dict(self) -> dict[str, int]:
        return asdict(self)

    def flops(self, parameters: int) -> int:
        """2N for a token that is forwarded or generated, 4N more for one back-propagated. Attention is left out:
        at the lengths of tiny worlds it is a few per cent."""
        passed = self.generated + self.forwarded + self.coach
        return parameters * (2 * passed + 4 * self.backpropagated)


@dataclass(frozen=True)
class EvaluationStart:
    """How far the run was when an evaluation began."""

    episodes: int = 0
    updates: int = 0
    seconds: float = 0.0

    def is_long_ago(self, now: "EvaluationStart", config: EvalConfig) -> bool:
        """Whether it is time for another one."""
        count, unit = config.interval
        if not count:
            return False
        if unit is IntervalUnit.MINUTES:
            return now.seconds - self.seconds >= 60 * count
        then, since = (self.updates, now.updates) if unit is IntervalUnit.UPDATES else (self.episodes, now.episodes)
        return since // count > then // count


@dataclass
class TrainingProgress:
    """`step` counts batches, `version` those that changed the weights, `requests` the groups that were ordered."""

    step: int = 0
    version: int = 0
    requests: int = 0
    episodes: int = 0
    groups: dict[str, int] = field(default_factory=dict)
    """By kind: the groups that updates were made of."""
    dropped: int = 0
    """Rollouts that were too old when their turn came."""
    past_deadline: int = 0
    """Rollouts that were cut at their deadline."""
    staleness: dict[int, int] = field(default_factory=dict)
    """By age in versions: rollouts that were learned from."""
    tokens: TokenCounts = field(default_factory=TokenCounts)
    seconds: float = 0.0
    scores: list[dict[str, Any]] = field(default_factory=list)
    """Held-out scores, each with `episodes_so_far`."""
    evaluation: EvaluationStart = field(default_factory=EvaluationStart)
    """When the last evaluation began."""
    activity: ActivityTimes = field(default_factory=ActivityTimes)
    """What the time went into, the whole run long."""
    ordered: list[PromptRequest] = field(default_factory=list)
    """Under way, and to be ordered again after a restart."""
    waiting: list[RolloutGroup] = field(default_factory=list)
    """Finished, and not learned from yet."""

    def count(self, group: RolloutGroup) -> None:
        """A group that was played to be learned from."""
        self.episodes += len(group.rollouts)
        self.past_deadline += sum(rollout.past_deadline for rollout in group.rollouts)
        self.tokens.generated += sum(rollout.tokens_generated for rollout in group.rollouts)
        self.tokens.forwarded += sum(rollout.tokens_read for rollout in group.rollouts)
        self.tokens.coach += group.coach_tokens

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"staleness": sorted(self.staleness.items())}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Also from a checkpoint that was written before keys were renamed."""
        current = {"requests" if key == "draws" else key: value for key, value in data.items()}
        current["staleness"] = dict(data["staleness"])
        if "evaluation" not in data and data["scores"]:
            current["evaluation"] = EvaluationStart(data["scores"][-1]["episodes_so_far"], data["version"])
        for key in ("ordered", "waiting"):
            current[key] = with_current_state_keys(data[key])
        return TypeAdapter(cls).validate_python(current)

    def episodes_to(self, success: float) -> int | None:
        """How many episodes it took until held-out success was this high; None where it never was."""
        return next((score["episodes_so_far"] for score in self.scores if score["success"] >= success), None)
