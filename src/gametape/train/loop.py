"""The training loop: collect groups, learn, publish, log. What is learned from a group is the algorithm's, where groups
come from is the source's."""

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from gametape.core.config import RunConfig
from gametape.core.errors import GametapeError
from gametape.core.seeds import seed_for
from gametape.train.activity import ActivityClock
from gametape.train.alarms import AlarmMonitor, BehaviourMonitor, TrainingAlarm
from gametape.train.algorithms.base import Algorithm
from gametape.train.checkpoints import CheckpointWriter
from gametape.train.config_changes import find_changes, require_resumable
from gametape.train.held_out_eval import ForgettingProbe, HeldOutEvaluator, HeldOutScore
from gametape.train.learner import PolicyLearner, TrainingDiverged
from gametape.train.progress import EvaluationStart, TrainingProgress
from gametape.train.prompts import Curriculum
from gametape.train.rollouts import GroupSource, PromptRequest, RolloutGroup, groups_to_resample
from gametape.train.run_directory import (
    MetricsLog,
    RunDirectory,
    append_target_metrics,
    file_size,
    save_annotated_trajectory,
)
from gametape.train.run_status import RunStatus, StatusReporter
from gametape.train.sources import PolicySource
from gametape.train.update_log import UpdateSummary
from gametape.train.update_metrics import UpdateMetrics

_T = TypeVar("_T")
_EXPECTED = 2
"""Times the groups of an update: the prompts after those that are ordered which are made ready meanwhile."""


@dataclass
class TrainingCallbacks:
    """Functions that are called as a run goes on, besides the log."""

    opened: Callable[[Callable[[], int]], None] = lambda _in_flight: None
    """Before anything is sampled: gets a function that says how many rollouts are open at the moment."""
    step: Callable[[TrainingProgress, UpdateMetrics], None] = lambda _progress, _update: None
    status: Callable[[RunStatus], None] = lambda _status: None
    """After each update, with what a person wants to see."""
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
    policy_source: PolicySource
    """Where the policy's own rollouts come from: `source` itself, unless the algorithm has one of its own."""
    curriculum: Curriculum
    buckets: Sequence[str]
    """The names of the curriculum's buckets."""
    evaluator: HeldOutEvaluator
    alarms: AlarmMonitor
    log: MetricsLog
    behaviour: BehaviourMonitor
    forgetting_probe: ForgettingProbe
    writer: CheckpointWriter
    clock: ActivityClock
    pause_sampling: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    """Inside, no token is sampled from the tensors that the learner changes."""
    progress: TrainingProgress = field(default_factory=TrainingProgress)
    callbacks: TrainingCallbacks = field(default_factory=TrainingCallbacks)

    def __post_init__(self) -> None:
        self._began = time.monotonic()
        self._thread = ThreadPoolExecutor(1, "learner")
        self._status = StatusReporter(self.clock, self.policy_source, self.curriculum, self.buckets)
        self._stale: list[int] = []

    async def train(self) -> str:
        """Train until something ends the run; returns what did."""
        self.callbacks.opened(lambda: self.policy_source.in_flight)
        try:
            if not self.progress.scores and not self.evaluator.running:
                await self.begin_evaluation()
                await self._save_now()  # what is killed from here on can be resumed
            while not (why := self._stop_reason()):
                await self._evaluate_slice()
                groups = await self.collect()
                self.watch_behaviour(groups)
                if why := self._watch_stop_reason():
                    break
                update = await self.learn(groups)
                await self.log_update(groups, update)
                if self._evaluation_is_due():
                    await self.begin_evaluation()
                if self.progress.step % self.config.checkpoint.every == 0:
                    await self.save()
        except TrainingDiverged as error:
            self.log.write("halt", self.progress.step, why=str(error))
            if not self.progress.scores:
                await self._cut_evaluation()
            await self._save_now()
            return f"nan: {error}"
        await self.evaluate_end()
        await self._save_now()
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
        self._stale = []
        while need := groups_to_resample([group.kind for group in taken], wanted, most):
            under_way = sum(request.purpose == "train" for request in progress.ordered)
            orders = range(max(need, ahead) - under_way - len(progress.waiting))
            for _ in orders:
                self._order()
            if orders:
                self.policy_source.expect([self._request(progress.requests + at) for at in range(_EXPECTED * wanted)])
            group = await self._take()
            progress.count(group)
            if self.algorithm.asynchronous and not self._is_fresh(group):
                progress.dropped += len(group.rollouts)
                self._stale.append(group.request.number)
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

    async def learn(self, groups: Sequence[RolloutGroup]) -> UpdateMetrics:
        """One update, and its weights to the source, which samples with them from now on, or soon."""
        progress = self.progress
        async with self.pause_sampling():
            with self.clock.during("learn"):
                update = await self._compute(partial(self._update, groups))
            self.algorithm.keep_learned()
            progress.step += 1
            progress.version += update.lines > 0
            await self.publish()
        progress.tokens.backpropagated += update.tokens
        progress.tokens.forwarded += update.forwarded
        for group in groups:
            progress.groups[group.kind] = progress.groups.get(group.kind, 0) + 1
            self.curriculum.record(
                group.request.bucket, [result.passed for result in group.results if not result.infra_error]
            )
        return update

    def _update(self, groups: Sequence[RolloutGroup]) -> UpdateMetrics:
        progress = self.progress
        batch = self.algorithm.replay_buffer.with_replayed(self.algorithm.build_batch(groups), progress.step)
        update = self.learner.update(batch, progress.step, progress.version, min(1.0, self._spent))
        self.algorithm.after_batch()
        return update

    @property
    def _spent(self) -> float:
        """The used share of the budget."""
        spent = self.progress.episodes / self.config.episodes
        return max(spent, self.flops / self.config.flops) if self.config.flops else spent

    async def _compute(self, function: Callable[[], _T]) -> _T:
        """Run what computes for long. It has a thread of its own, so that rollouts go on meanwhile; in reproducible
        runs none do."""
        if self.config.rl.reproducible:
            return function()
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    async def publish(self) -> None:
        await self.source.publish(self.progress.version, await self._compute(self.learner.publish))

    async def log_update(self, groups: Sequence[RolloutGroup], update: UpdateMetrics) -> None:
        """A line for the update, and one for each alarm that begins with it."""
        progress, summary = self.progress, UpdateSummary(groups, update, self.progress.version)
        forgotten = await self._compute(self.forgetting_probe.forgotten_share)
        status = self._status.report(progress, summary, self._spent, self._seconds())
        self.log.write(
            "update",
            progress.step,
            version=progress.version,
            episodes=progress.episodes,
            **summary.to_log(),
            dropped=progress.dropped,
            dropped_requests=self._stale,
            pass_rates={name: status.pass_rates.get(name) for name in self._bucket_names(groups)},
            retired=sorted({self.buckets[at] for at in self.curriculum.retired} & {*self._bucket_names(groups)}),
            in_flight=status.in_flight,
            flops=self.flops,
            forgotten=forgotten,
            seconds=round(self._seconds(), 3),
            tokens_per_second=status.tokens_per_second,
            time=status.time,
            eta_seconds=status.eta_seconds,
        )
        saturated = len(self.curriculum.retired) == self.curriculum.buckets
        health = summary.health(forgotten, self.algorithm.target_metrics, saturated)
        self._report_alarms(self.alarms.check_health(health))
        append_target_metrics(self.directory.targets, progress.step, self.algorithm.target_metrics)
        self.callbacks.step(progress, update)
        self.callbacks.status(status)

    def _bucket_names(self, groups: Sequence[RolloutGroup]) -> list[str]:
        return sorted({self.buckets[group.request.bucket] for group in groups})

    async def begin_evaluation(self) -> None:
        """Its first slice is ordered before the next update; in reproducible runs it is played here and now."""
        self.progress.evaluation = self._now()
        self.evaluator.begin()
        if self.config.rl.reproducible:
            await self._play_evaluation()

    async def evaluate_end(self) -> None:
        """Score what is left of the evaluation under way, and the last weights, unless they have been."""
        if self.evaluator.running:
            await self._cut_evaluation()
        last, version = self.progress.scores[-1], self.progress.version
        mixed = list(last.get("versions") or ()) not in ([], [version, version])
        if last["episodes_so_far"] < self.progress.episodes or mixed:
            self.progress.evaluation = self._now()
            self.evaluator.begin()
            await self._play_evaluation()

    async def _cut_evaluation(self) -> None:
        """Score what was ordered of it, some of which may still be played. If nothing was, there is no score."""
        self.evaluator.cut()
        if self.evaluator.running:
            await self._play_evaluation()
        elif self.evaluator.results:
            self._end_evaluation()

    async def _play_evaluation(self) -> None:
        """Play all that is left of it, with the current weights, and wait for it."""
        await self.publish()
        while self.evaluator.running:
            self._order_evaluation(self.config.eval.episodes)
            await self._receive_evaluation()
        await self.publish()

    async def _evaluate_slice(self) -> None:
        """Order the next part of the evaluation under way. It is played beside the rollouts of the update; only where
        these are not the policy's there is nothing to play it beside."""
        self._order_evaluation(self.config.eval.slice)
        if self.source is not self.policy_source:
            await self._receive_evaluation()

    def _order_evaluation(self, most: int) -> None:
        for request in self.evaluator.take_requests(most):
            self.progress.ordered.append(request)
            self.source.order(request)

    async def _receive_evaluation(self) -> None:
        """Wait for what was ordered of it."""
        while any(request.purpose != "train" for request in self.progress.ordered):
            self._receive([await self.source.take()])

    def _end_evaluation(self) -> None:
        score = self.evaluator.score()
        self.forgetting_probe.keep_successes(self.evaluator.successes, score.success)
        entry = {"episodes_so_far": self.progress.episodes, **score.to_dict()}
        self.progress.scores.append(entry)
        if annotated := self.algorithm.last_learned or self.algorithm.last_annotated:
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

    async def _save_now(self) -> None:
        await self.save()
        await self._compute(self.writer.finish)

    async def save(self) -> None:
        """It is written beside what comes next."""
        self._receive(self.source.finished())
        self.progress.seconds, self._began = self._seconds(), time.monotonic()
        state: dict[str, Any] = {
            "progress": self.progress.to_dict(),
            "curriculum": self.curriculum.state(),
            **self.algorithm.state(),
            "evaluation": self.evaluator.state(),
            "rehearsal": self.forgetting_probe.state(),
            "alarms": self.alarms.state(),
            "config": self.config.model_dump(mode="json"),
            "sizes": {
                "metrics": self.log.sync(),
                "targets": file_size(self.directory.targets),
                "behaviour": self.behaviour.sync(),
            },
        }
        if (coach := self.policy_source.annotator_state()) is not None:
            state["coach"] = coach
        await self._compute(partial(self.writer.begin, self.progress.step, state, self.learner.save))

    def restore(self, checkpoint: Path, state: Mapping[str, Any]) -> None:
        """Take over a checkpoint's weights and states."""
        require_resumable(find_changes(RunConfig.model_validate(state["config"]), self.config), "config.toml")
        self.learner.load(checkpoint)
        self.progress = TrainingProgress.from_dict(state["progress"])
        self.curriculum.restore(state["curriculum"])
        self.algorithm.restore(state)
        self.policy_source.restore_annotator(state["coach"])
        if "evaluation" in state:
            self.evaluator.restore(state["evaluation"])
        self.forgetting_probe.restore(state["rehearsal"])
        self.alarms.restore(state["alarms"])

    def reorder_pending(self) -> None:
        """Order again what was under way when the checkpoint was written."""
        for request in self.progress.ordered:
            self.source.order(request)

    def _request(self, number: int) -> PromptRequest:
        return PromptRequest(number, self.curriculum.draw(number), seed_for(self.config.seed, "draw", number))

    def _order(self) -> None:
        progress, request = self.progress, self._request(self.progress.requests)
        progress.requests += 1
        progress.ordered.append(request)
        self.source.order(request)

    async def _take(self) -> RolloutGroup:
        """The next group to be learned from. Held-out rollouts that come before it are counted on the way."""
        while not self.progress.waiting:
            self._receive([await self.source.take()])
        return self.progress.waiting.pop(0)

    def _receive(self, groups: Sequence[RolloutGroup]) -> None:
        """Finished, and no longer under way."""
        for group in groups:
            self.progress.ordered.remove(group.request)
            self._status.sampled_tokens += sum(rollout.tokens_generated for rollout in group.rollouts)
            if group.request.purpose == "train":
                self.progress.waiting.append(group)
                continue
            self.evaluator.record(group)
            if not self.evaluator.running:
                self._end_evaluation()

    def _is_fresh(self, group: RolloutGroup) -> bool:
        oldest = group.oldest_version
        age = 0 if oldest is None else self.progress.version - oldest
        if age > self.config.rl.max_staleness:
            return False
        self.progress.staleness[age] = self.progress.staleness.get(age, 0) + len(group.rollouts)
        return True

    def _stop_reason(self) -> str:
        wanted, scores = self.config.eval.stop_at, self.progress.scores
        if wanted is not None and scores and scores[-1]["success"] >= wanted:
            return "success"
        if self.config.flops and self.flops >= self.config.flops:
            return "flops"
        return "episodes" if self.progress.episodes >= self.config.episodes else self._watch_stop_reason()

    def _watch_stop_reason(self) -> str:
        """`watch` where the monitors' breaker has tripped, and may end the run."""
        return "watch" if self.config.watch.stop and self.behaviour.rung in ("pause", "stop") else ""

    def _evaluation_is_due(self) -> bool:
        return not self.evaluator.running and self.progress.evaluation.is_long_ago(self._now(), self.config.eval)

    def _now(self) -> EvaluationStart:
        return EvaluationStart(self.progress.episodes, self.progress.version, self._seconds())

    def _seconds(self) -> float:
        return self.progress.seconds + time.monotonic() - self._began
