"""The training loop: collect groups, learn, publish, log. What is learned from a group is the algorithm's, where groups
come from is the source's."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from gametape.core.config import RunConfig
from gametape.core.errors import GametapeError
from gametape.core.seeds import seed_for
from gametape.train import checkpoints
from gametape.train.alarms import AlarmMonitor, BehaviourMonitor, Share, TrainingAlarm, TrainingHealth, hint_leaks
from gametape.train.algorithms.base import Algorithm
from gametape.train.checkpoints import Checkpoint
from gametape.train.config_changes import find_changes, require_resumable
from gametape.train.held_out_eval import ForgettingProbe, HeldOutEvaluator, HeldOutScore
from gametape.train.learner import PolicyLearner, TrainingDiverged, UpdateMetrics
from gametape.train.progress import TrainingProgress
from gametape.train.prompts import Curriculum
from gametape.train.rollouts import (
    GroupSource,
    PromptRequest,
    RolloutGroup,
    TargetMetrics,
    groups_to_resample,
)
from gametape.train.run_directory import (
    MetricsLog,
    RunDirectory,
    append_target_metrics,
    file_size,
    save_annotated_trajectory,
)


@dataclass
class TrainingCallbacks:
    """Functions that are called as a run goes on, besides the log."""

    step: Callable[[TrainingProgress, UpdateMetrics], None] = lambda _progress, _update: None
    score: Callable[[TrainingProgress, HeldOutScore], None] = lambda _progress, _score: None
    alarm: Callable[[TrainingAlarm], None] = lambda _alarm: None
    alarm_over: Callable[[str], None] = lambda _name: None


@dataclass
class TrainingLoop:
    """The parts of a run. A checkpoint holds `progress`, the learner's tensors and the states of the other parts."""

    config: RunConfig
    directory: RunDirectory
    algorithm: Algorithm
    learner: PolicyLearner
    source: GroupSource
    curriculum: Curriculum
    evaluator: HeldOutEvaluator
    alarms: AlarmMonitor
    log: MetricsLog
    behaviour: BehaviourMonitor
    forgetting_probe: ForgettingProbe
    progress: TrainingProgress = field(default_factory=TrainingProgress)
    callbacks: TrainingCallbacks = field(default_factory=TrainingCallbacks)
    _began: float = field(default_factory=time.monotonic)

    async def train(self) -> str:
        """Train until something ends the run; returns what did."""
        try:
            if not self.progress.scores:
                await self.evaluate()
                self.save()
            while not (why := self._stop_reason()):
                groups = await self.collect()
                self.watch_behaviour(groups)
                if why := self._watch_stop_reason():
                    break
                update = self.learn(groups)
                await self.publish()
                self.log_update(groups, update)
                if self._evaluation_is_due():
                    await self.evaluate()
                if self.progress.step % self.config.checkpoint.every == 0:
                    self.save()
        except TrainingDiverged as error:
            self.log.write("halt", self.progress.step, why=str(error))
            self.save()
            return f"nan: {error}"
        if self.progress.scores[-1]["episodes_so_far"] < self.progress.episodes:
            await self.evaluate()
        self.save()
        return why

    @property
    def flops(self) -> int:
        """Operations so far, without those of evaluation and of the forgetting probe."""
        return self.progress.tokens.flops(self.learner.parameters)

    async def collect(self) -> list[RolloutGroup]:
        """The groups of one update: as many with a signal as it waits for, or as many as may be sampled for it."""
        rl, progress = self.config.rl, self.progress
        wanted = rl.groups
        most = math.ceil(wanted * (rl.resample if self.algorithm.compares_rollouts else 1))
        ahead = 2 * wanted if self.algorithm.asynchronous else 0
        taken: list[RolloutGroup] = []
        while need := groups_to_resample([group.kind for group in taken], wanted, most):
            for _ in range(max(need, ahead) - len(progress.ordered) - len(progress.waiting)):
                self._order()
            group = progress.waiting.pop(0) if progress.waiting else await self._take()
            progress.episodes += len(group.rollouts)
            self._count_tokens(group)
            if self.algorithm.asynchronous and not self._is_fresh(group):
                progress.dropped += len(group.rollouts)
                continue
            taken.append(group)
        if all(group.kind == "lost" for group in taken):
            why = taken[-1].rollouts[-1].reason if taken else "all were too old"
            raise GametapeError(f"nothing could be learned from the rollouts of update {progress.step}: {why}")
        return taken

    def watch_behaviour(self, groups: Sequence[RolloutGroup]) -> None:
        """Feed what the policy says and does to the monitors, before anything more is learned from it."""
        turns = [group.rollouts[0].turn_texts for group in groups]
        self.behaviour.trained = self.progress.version > 0
        self._report_alarms(self.alarms.filter_new(self.behaviour.observe(self.progress.step, turns)))

    def learn(self, groups: Sequence[RolloutGroup]) -> UpdateMetrics:
        progress = self.progress
        spent = progress.episodes / self.config.episodes
        if self.config.flops:
            spent = max(spent, self.flops / self.config.flops)
        batch = self.algorithm.replay_buffer.with_replayed(self.algorithm.build_batch(groups), progress.step)
        update = self.learner.update(batch, progress.step, progress.version, min(1.0, spent))
        self.progress.step += 1
        self.progress.version += update.lines > 0
        self.progress.tokens.backpropagated += update.tokens
        self.progress.tokens.forwarded += update.forwarded
        for group in groups:
            self.progress.groups[group.kind] = self.progress.groups.get(group.kind, 0) + 1
            self.curriculum.record(
                group.request.bucket, [result.passed for result in group.results if not result.infra_error]
            )
        return update

    async def publish(self) -> None:
        """Give the new weights to the source, which samples with them from now on, or soon."""
        await self.source.publish(self.progress.version, self.learner.publish())

    def log_update(self, groups: Sequence[RolloutGroup], update: UpdateMetrics) -> None:
        """A line for the update, and one for each alarm that begins with it."""
        progress, kinds = self.progress, [group.kind for group in groups]
        rollouts = [rollout for group in groups for rollout in group.rollouts]
        counted = [rollout for rollout in rollouts if not rollout.result.infra_error]
        segments = [segment for rollout in rollouts for segment in rollout.segments]
        sampled = sum(sum(segment.mask) for segment in segments)
        length = sampled / max(1, sum(rollout.turns for rollout in rollouts))
        forgotten = self.forgetting_probe.forgotten_share()
        self.log.write(
            "update",
            progress.step,
            version=progress.version,
            episodes=progress.episodes,
            reward=sum(rollout.result.reward for rollout in counted) / max(1, len(counted)),
            groups={kind: kinds.count(kind) for kind in ("mixed", "all_fail", "all_pass", "lost")},
            overlong=sum(rollout.result.overlong for rollout in rollouts),
            lost=len(rollouts) - len(counted),
            dropped=progress.dropped,
            flops=self.flops,
            turn_tokens=length,
            forgotten=forgotten,
            **vars(update),
            seconds=round(self._seconds(), 3),
        )
        flat = [group for group in groups if group.kind in ("all_fail", "all_pass") and not group.targets]
        failed = sum(group.kind == "all_fail" for group in flat)
        health = TrainingHealth(
            version=progress.version - (update.lines > 0),
            entropy=update.entropy,
            length=length,
            kl_to_start=update.kl_to_start,
            mismatch=update.mismatch,
            forgotten=forgotten,
            hacked=Share(sum(rollout.hacked for rollout in rollouts), len(rollouts)),
            lost=Share(len(rollouts) - len(counted), len(rollouts)),
            lost_reason=next((rollout.reason for rollout in reversed(rollouts) if rollout.result.infra_error), ""),
            without_signal=Share(len(flat), len(kinds) - kinds.count("lost")),
            flat_kind="all_fail" if failed >= 0.9 * len(flat) else "all_pass" if failed <= 0.1 * len(flat) else "",
            hint_leaks=hint_leaks(segments, [target for group in groups for target in group.targets]),
            teacher_gain=_teacher_gain(self.algorithm.target_metrics),
            saturated=len(self.curriculum.retired) == self.curriculum.buckets,
        )
        self._report_alarms(self.alarms.check_health(health))
        append_target_metrics(self.directory.targets, progress.step, self.algorithm.target_metrics)
        self.callbacks.step(progress, update)

    async def evaluate(self) -> None:
        score = await self.evaluator.evaluate(self.progress.version)
        self.forgetting_probe.keep_successes(self.evaluator.successes, score.success)
        entry = {"episodes_so_far": self.progress.episodes, **score.to_dict()}
        self.progress.scores.append(entry)
        if annotated := self.algorithm.last_annotated:
            save_annotated_trajectory(annotated, self.directory.trajectories)
        self.log.write("eval", self.progress.step, **entry, flops=self.flops, seconds=round(self._seconds(), 3))
        self._report_alarms(self.alarms.check_evaluation(entry, self.progress.scores[0]))
        self.callbacks.score(self.progress, score)

    def _report_alarms(self, alarms: Sequence[TrainingAlarm]) -> None:
        for alarm in alarms:
            self.log.write("alarm", self.progress.step, **vars(alarm))
            self.callbacks.alarm(alarm)
        for name in self.alarms.take_over():
            self.log.write("alarm_over", self.progress.step, name=name)
            self.callbacks.alarm_over(name)

    def save(self) -> None:
        self._move_to_waiting(self.source.finished())
        self.progress.seconds, self._began = self._seconds(), time.monotonic()
        state = {
            "progress": self.progress.to_dict(),
            "curriculum": self.curriculum.state(),
            **self.algorithm.state(),
            "rehearsal": self.forgetting_probe.state(),
            "alarms": self.alarms.state(),
            "config": self.config.model_dump(mode="json"),
            "sizes": {
                "metrics": self.log.sync(),
                "targets": file_size(self.directory.targets),
                "behaviour": self.behaviour.sync(),
            },
        }
        checkpoint = replace(self.learner.save(), state=state)
        checkpoints.save(self.directory.checkpoints, self.progress.step, checkpoint, self.config.checkpoint.keep)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Take over a checkpoint's weights and states."""
        before = RunConfig.model_validate(checkpoint.state["config"])
        require_resumable(find_changes(before, self.config), "config.toml")
        self.learner.load(checkpoint)
        self.progress = TrainingProgress.from_dict(checkpoint.state["progress"])
        self.curriculum.restore(checkpoint.state["curriculum"])
        self.algorithm.restore(checkpoint.state)
        self.forgetting_probe.restore(checkpoint.state["rehearsal"])
        self.alarms.restore(checkpoint.state["alarms"])

    def reorder_pending(self) -> None:
        """Order again what was under way when the checkpoint was written."""
        for request in self.progress.ordered:
            self.source.order(request)

    def _order(self) -> None:
        progress = self.progress
        seed = seed_for(self.config.seed, "draw", progress.requests)
        request = PromptRequest(progress.requests, self.curriculum.draw(progress.requests), seed)
        progress.requests += 1
        progress.ordered.append(request)
        self.source.order(request)

    async def _take(self) -> RolloutGroup:
        self._move_to_waiting([await self.source.take()])
        return self.progress.waiting.pop(0)

    def _move_to_waiting(self, groups: Sequence[RolloutGroup]) -> None:
        """Finished, and no longer under way."""
        for group in groups:
            self.progress.ordered.remove(group.request)
            self.progress.waiting.append(group)

    def _count_tokens(self, group: RolloutGroup) -> None:
        tokens = self.progress.tokens
        tokens.generated += sum(rollout.tokens_generated for rollout in group.rollouts)
        tokens.forwarded += sum(rollout.tokens_read for rollout in group.rollouts)
        tokens.coach += group.coach_tokens

    def _is_fresh(self, group: RolloutGroup) -> bool:
        oldest = group.oldest_version
        age = 0 if oldest is None else self.progress.version - oldest
        if age > self.config.rl.max_staleness:
            return False
        self.progress.staleness[age] = self.progress.staleness.get(age, 0) + len(group.rollouts)
        return True

    def _stop_reason(self) -> str:
        wanted, last = self.config.eval.stop_at, self.progress.scores[-1]
        if wanted is not None and last["success"] >= wanted:
            return "success"
        if self.config.flops and self.flops >= self.config.flops:
            return "flops"
        return "episodes" if self.progress.episodes >= self.config.episodes else self._watch_stop_reason()

    def _watch_stop_reason(self) -> str:
        """`watch` where the monitors' breaker has tripped, and may end the run."""
        return "watch" if self.config.watch.stop and self.behaviour.rung in ("pause", "stop") else ""

    def _evaluation_is_due(self) -> bool:
        every, last = self.config.eval.every, self.progress.scores[-1]["episodes_so_far"]
        return bool(every) and self.progress.episodes // every > last // every

    def _seconds(self) -> float:
        return self.progress.seconds + time.monotonic() - self._began


def _teacher_gain(metrics: Sequence[TargetMetrics]) -> Share:
    return Share(sum(sum(target.student) - sum(target.teacher) for target in metrics), len(metrics))
