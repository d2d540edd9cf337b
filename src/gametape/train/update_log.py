"""What the log and the alarms are told about the groups of an update."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gametape.core.token_segments import TokenSegment
from gametape.train.alarms import Share, TrainingHealth, hint_leaks
from gametape.train.rollouts import GroupKind, HintCounts, RolloutGroup, RolloutSample, TargetMetrics
from gametape.train.update_metrics import UpdateMetrics

_KINDS: tuple[GroupKind, ...] = ("mixed", "all_fail", "all_pass", "lost")


@dataclass(frozen=True)
class UpdateSummary:
    """The groups of an update and what was learned from them. `version` is that of the weights afterwards."""

    groups: Sequence[RolloutGroup]
    update: UpdateMetrics
    version: int

    @cached_property
    def rollouts(self) -> list[RolloutSample]:
        return [rollout for group in self.groups for rollout in group.rollouts]

    @cached_property
    def counted(self) -> list[RolloutSample]:
        """Those without an infrastructure error."""
        return [rollout for rollout in self.rollouts if not rollout.result.infra_error]

    @cached_property
    def segments(self) -> list[TokenSegment]:
        return [segment for rollout in self.rollouts for segment in rollout.segments]

    @property
    def lost_reason(self) -> str:
        """Of the last one with an infrastructure error."""
        return next((rollout.reason for rollout in reversed(self.rollouts) if rollout.result.infra_error), "")

    @property
    def reward(self) -> float:
        return sum(rollout.result.reward for rollout in self.counted) / max(1, len(self.counted))

    @property
    def pass_rate(self) -> float:
        """The share of rollouts that passed."""
        return sum(rollout.result.passed for rollout in self.counted) / max(1, len(self.counted))

    @property
    def turn_tokens(self) -> float:
        """The mean number of sampled tokens in a turn."""
        sampled = sum(sum(segment.mask) for segment in self.segments)
        return sampled / max(1, sum(rollout.turns for rollout in self.rollouts))

    @property
    def staleness(self) -> float:
        """The mean age, in versions, of the groups when they were learned from."""
        before = self.version - (self.update.lines > 0)
        ages = [before - oldest for group in self.groups if (oldest := group.oldest_version) is not None]
        return sum(ages) / len(ages) if ages else 0.0

    @property
    def hint_counts(self) -> dict[str, dict[str, int]]:
        """By the author of the coach's hints for these groups."""
        counts: dict[str, HintCounts] = {}
        for group in self.groups:
            for author, more in group.hint_counts.items():
                counts[author] = counts.get(author, HintCounts()) + more
        return {author: vars(total) for author, total in sorted(counts.items())}

    def to_log(self) -> dict[str, Any]:
        kinds = [group.kind for group in self.groups]
        return {
            "requests": [group.request.number for group in self.groups],
            "turns": [max(rollout.turns for rollout in group.rollouts) for group in self.groups],
            "reward": self.reward,
            "pass_rate": self.pass_rate,
            "groups": {kind: kinds.count(kind) for kind in _KINDS},
            "overlong": sum(rollout.result.overlong for rollout in self.rollouts),
            "past_deadline": sum(rollout.past_deadline for rollout in self.rollouts),
            "lost": len(self.rollouts) - len(self.counted),
            "lost_reason": self.lost_reason,
            "staleness": self.staleness,
            "turn_tokens": self.turn_tokens,
            "hints": self.hint_counts,
            **vars(self.update),
        }

    def health(self, forgotten: float | None, targets: Sequence[TargetMetrics], saturated: bool) -> TrainingHealth:
        """What the alarms look at."""
        update, rollouts = self.update, self.rollouts
        flat = [group for group in self.groups if group.kind in ("all_fail", "all_pass") and not group.targets]
        failed = sum(group.kind == "all_fail" for group in flat)
        return TrainingHealth(
            version=self.version - (update.lines > 0),
            entropy=update.entropy,
            length=self.turn_tokens,
            kl_to_start=update.kl_to_start,
            mismatch=update.mismatch,
            forgotten=forgotten,
            hacked=Share(sum(rollout.hacked for rollout in rollouts), len(rollouts)),
            lost=Share(len(rollouts) - len(self.counted), len(rollouts)),
            lost_reason=self.lost_reason,
            without_signal=Share(len(flat), sum(group.kind != "lost" for group in self.groups)),
            flat_kind="all_fail" if failed >= 0.9 * len(flat) else "all_pass" if failed <= 0.1 * len(flat) else "",
            hint_leaks=hint_leaks(self.segments, [target for group in self.groups for target in group.targets]),
            teacher_gain=_teacher_gain(targets),
            saturated=saturated,
        )


def _teacher_gain(metrics: Sequence[TargetMetrics]) -> Share:
    return Share(sum(sum(target.student) - sum(target.teacher) for target in metrics), len(metrics))
