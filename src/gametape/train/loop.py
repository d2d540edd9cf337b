"""The loop: collect, learn, publish, write down. What it does with a group is the arm's, where groups come from the
source's."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from gametape.core.config import RunConfig
from gametape.core.errors import BadInput, GametapeError
from gametape.train import checkpoints
from gametape.train.alarms import Alarm, Alarms, Health
from gametape.train.batch import Batch
from gametape.train.behaviour import Behaviour
from gametape.train.checkpoints import Checkpoint
from gametape.train.coaching import Coaching
from gametape.train.curriculum import Curriculum
from gametape.train.distilling import Distilled
from gametape.train.held_out import HeldOut, Score
from gametape.train.leaking import leaked_share
from gametape.train.learner import Diverged, Learner, Update
from gametape.train.metrics import MetricsLog
from gametape.train.progress import Progress
from gametape.train.rehearsal import Rehearsal
from gametape.train.rolled import Draw, Group
from gametape.train.run_directory import RunDirectory
from gametape.train.seeds import seed_for
from gametape.train.selection import Kind, missing
from gametape.train.shelf import Shelf
from gametape.train.source import Source
from gametape.train.tapes import append_targets, save_tape, size_of

Arm = Callable[[Sequence[Group]], Batch]


@dataclass
class Watching:
    """Who is told how it goes, besides the log."""

    step: Callable[[Progress, Update], None] = lambda _progress, _update: None
    score: Callable[[Progress, Score], None] = lambda _progress, _score: None
    alarm: Callable[[Alarm], None] = lambda _alarm: None


@dataclass
class Run:
    """Everything that works together in a run. `progress` and the tensors are what a checkpoint holds."""

    config: RunConfig
    directory: RunDirectory
    arm: Arm
    learner: Learner
    source: Source
    curriculum: Curriculum
    held_out: HeldOut
    alarms: Alarms
    log: MetricsLog
    behaviour: Behaviour
    shelf: Shelf
    rehearsal: Rehearsal
    coaching: Coaching | None = None
    progress: Progress = field(default_factory=Progress)
    watching: Watching = field(default_factory=Watching)
    _began: float = field(default_factory=time.monotonic)

    async def train(self) -> str:
        """Until something ends it; returns what."""
        try:
            if not self.progress.scores:
                await self.evaluate()
                self.save()
            while not (why := self._over()):
                groups = await self.collect()
                self.look(groups)
                if why := self._halted():
                    break
                update = self.learn(groups)
                await self.publish()
                self.note(groups, update)
                if self._evaluation_is_due():
                    await self.evaluate()
                if self.progress.step % self.config.checkpoint.every == 0:
                    self.save()
        except Diverged as error:
            self.log.write("halt", self.progress.step, why=str(error))
            self.save()
            return f"nan: {error}"
        if self.progress.scores[-1]["episodes_so_far"] < self.progress.episodes:
            await self.evaluate()
        self.save()
        return why

    @property
    def flops(self) -> int:
        """Operations so far; evaluation, and what is rehearsed of it, is left out."""
        return self.progress.tokens.flops(self.learner.policy.parameters)

    async def collect(self) -> list[Group]:
        """As many groups as an update waits for that carry a signal, or as many as may be sampled for it."""
        rl, progress = self.config.rl, self.progress
        wanted = rl.groups
        most = math.ceil(wanted * (rl.resample if self.config.uses_rl else 1))
        ahead = 2 * wanted if self.config.asynchronous else 0
        taken: list[Group] = []
        while need := missing([group.kind for group in taken], wanted, most):
            for _ in range(max(need, ahead) - len(progress.ordered) - len(progress.waiting)):
                self._order()
            group = progress.waiting.pop(0) if progress.waiting else await self._take()
            progress.episodes += len(group.rollouts)
            self._charge(group)
            if self.config.asynchronous and not self._is_fresh(group):
                progress.dropped += len(group.rollouts)
                continue
            taken.append(group)
        if all(group.kind == "lost" for group in taken):
            why = taken[-1].rollouts[-1].reason if taken else "all were too old"
            raise GametapeError(f"nothing could be learned from the rollouts of update {progress.step}: {why}")
        return taken

    def look(self, groups: Sequence[Group]) -> None:
        """Watch what the policy says and does, before anything more is learned from it."""
        said = [group.rollouts[0].said for group in groups]
        self._ring(self.alarms.hear(self.behaviour.look(self.progress.step, said)))

    def learn(self, groups: Sequence[Group]) -> Update:
        progress = self.progress
        spent = progress.episodes / self.config.episodes
        if self.config.flops:
            spent = max(spent, self.flops / self.config.flops)
        batch = self.shelf.filled(self.arm(groups), progress.step)
        update = self.learner.update(batch, progress.step, progress.version, min(1.0, spent))
        self.progress.step += 1
        self.progress.version += update.lines > 0
        self.progress.tokens.backpropagated += update.tokens
        self.progress.tokens.forwarded += update.forwarded
        for group in groups:
            self.curriculum.record(group.draw.cell, [one.passed for one in group.results if not one.lost])
        return update

    async def publish(self) -> None:
        """From now on everybody samples with the new weights, or will soon."""
        self.held_out.changed(self.progress.version)
        await self.source.publish(self.progress.version, self.learner.policy.weights())

    def note(self, groups: Sequence[Group], update: Update) -> None:
        """A line for the update, and one for each alarm that begins with it."""
        progress, kinds = self.progress, [group.kind for group in groups]
        rolled = [one for group in groups for one in group.rollouts]
        counted = [one for one in rolled if not one.result.lost]
        chosen = sum(sum(line.mask) for one in rolled for line in one.segments)
        length = chosen / max(1, sum(one.turns for one in rolled))
        forgotten = self.rehearsal.forgotten()
        self.log.write(
            "update",
            progress.step,
            version=progress.version,
            episodes=progress.episodes,
            reward=sum(one.result.reward for one in counted) / max(1, len(counted)),
            groups={kind: kinds.count(kind) for kind in ("mixed", "all_fail", "all_pass", "lost")},
            overlong=sum(one.result.overlong for one in rolled),
            lost=len(rolled) - len(counted),
            dropped=progress.dropped,
            flops=self.flops,
            turn_tokens=length,
            forgotten=forgotten,
            **vars(update),
            seconds=round(self._seconds(), 3),
        )
        health = Health(
            entropy=update.entropy,
            length=length,
            kl_to_start=update.kl_to_start,
            hack_rate=sum(one.hacked for one in rolled) / max(1, len(rolled)),
            lost=1 - len(counted) / max(1, len(rolled)),
            zero_variance=_without_signal(kinds) if self.config.uses_rl else 0.0,
            mismatch=update.mismatch,
            hint_leak=leaked_share(
                [line for one in rolled for line in one.segments], [one.aim for group in groups for one in group.aims]
            ),
            teacher_gain=_gain(self.learner.distilled),
            forgotten=forgotten,
            saturated=len(self.curriculum.retired) == self.curriculum.cells,
        )
        self._ring(self.alarms.look(health))
        append_targets(self.directory.targets, progress.step, self.learner.distilled)
        self.watching.step(progress, update)

    async def evaluate(self) -> None:
        score = await self.held_out.score()
        self.rehearsal.keep(self.held_out.successes, score.success)
        entry = {"episodes_so_far": self.progress.episodes, **score.plain()}
        self.progress.scores.append(entry)
        if self.coaching and (tape := self.coaching.tape):
            save_tape(tape.played, tape.hints, tape.advantage, tape.name, self.directory.trajectories)
        self.log.write("eval", self.progress.step, **entry, flops=self.flops, seconds=round(self._seconds(), 3))
        self._ring(self.alarms.look_at(entry, self.progress.scores[0]))
        self.held_out.changed(self.progress.version)
        self.watching.score(self.progress, score)

    def _ring(self, alarms: Sequence[Alarm]) -> None:
        for alarm in alarms:
            self.log.write("alarm", self.progress.step, **vars(alarm))
            self.watching.alarm(alarm)

    def save(self) -> None:
        policy = self.learner.policy
        self._set_aside(self.source.finished())
        self.progress.seconds, self._began = self._seconds(), time.monotonic()
        state = {
            "progress": self.progress.plain(),
            "curriculum": self.curriculum.state(),
            "coach": self.coaching.state() if self.coaching else {},
            "shelf": self.shelf.state(),
            "rehearsal": self.rehearsal.state(),
            "alarms": self.alarms.state(),
            "config": self.config.model_dump(mode="json"),
            "sizes": {
                "metrics": self.log.synced(),
                "targets": size_of(self.directory.targets),
                "behaviour": self.behaviour.synced(),
            },
        }
        teacher = self.learner.teacher.tensors() if self.learner.teacher else {}
        checkpoint = Checkpoint(policy.weights(), state, self.learner.optimizer.tensors(), teacher, policy.files)
        checkpoints.save(self.directory.checkpoints, self.progress.step, checkpoint, self.config.checkpoint.keep)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Everything but what the run began with."""
        _refuse_changes(self.config, checkpoint.state["config"])
        self.learner.policy.take(dict(checkpoint.weights))
        self.learner.optimizer.load(checkpoint.optimizer)
        if self.learner.teacher:
            self.learner.teacher.load(checkpoint.teacher)
        self.progress = Progress.from_plain(checkpoint.state["progress"])
        self.curriculum.restore(checkpoint.state["curriculum"])
        if self.coaching:
            self.coaching.restore(checkpoint.state["coach"])
        self.shelf.restore(checkpoint.state["shelf"])
        self.rehearsal.restore(checkpoint.state["rehearsal"])
        self.alarms.restore(checkpoint.state["alarms"])

    def go_on(self) -> None:
        """What was under way when the checkpoint was written begins again."""
        for draw in self.progress.ordered:
            self.source.order(draw)

    def _order(self) -> None:
        progress = self.progress
        seed = seed_for(self.config.seed, "draw", progress.draws)
        draw = Draw(progress.draws, self.curriculum.draw(progress.draws), seed)
        progress.draws += 1
        progress.ordered.append(draw)
        self.source.order(draw)

    async def _take(self) -> Group:
        self._set_aside([await self.source.take()])
        return self.progress.waiting.pop(0)

    def _set_aside(self, groups: Sequence[Group]) -> None:
        """Finished, and no longer under way."""
        for group in groups:
            self.progress.ordered.remove(group.draw)
            self.progress.waiting.append(group)

    def _charge(self, group: Group) -> None:
        tokens = self.progress.tokens
        tokens.generated += sum(rolled.generated for rolled in group.rollouts)
        tokens.forwarded += sum(rolled.read for rolled in group.rollouts)
        tokens.coach += group.coach_tokens

    def _is_fresh(self, group: Group) -> bool:
        oldest = group.oldest_version
        age = 0 if oldest is None else self.progress.version - oldest
        if age > self.config.rl.max_staleness:
            return False
        self.progress.staleness[age] = self.progress.staleness.get(age, 0) + len(group.rollouts)
        return True

    def _over(self) -> str:
        wanted, last = self.config.eval.stop_at, self.progress.scores[-1]
        if wanted is not None and last["success"] >= wanted:
            return "success"
        if self.config.flops and self.flops >= self.config.flops:
            return "flops"
        return "episodes" if self.progress.episodes >= self.config.episodes else self._halted()

    def _halted(self) -> str:
        """By the watch, where it may."""
        return "watch" if self.config.watch.stop and self.behaviour.rung in ("pause", "stop") else ""

    def _evaluation_is_due(self) -> bool:
        every, last = self.config.eval.every, self.progress.scores[-1]["episodes_so_far"]
        return bool(every) and self.progress.episodes // every > last // every

    def _seconds(self) -> float:
        return self.progress.seconds + time.monotonic() - self._began


def _without_signal(kinds: Sequence[Kind]) -> float:
    """The share of groups without a difference, of those that the machinery did not lose."""
    played = [kind for kind in kinds if kind != "lost"]
    return 1 - played.count("mixed") / max(1, len(played)) if played else 0.0


def _gain(distilled: Sequence[Distilled]) -> float | None:
    gains = [sum(one.student) - sum(one.teacher) for one in distilled]
    return sum(gains) / len(gains) if gains else None


_MAY_CHANGE = ("episodes", "flops", "eval", "checkpoint", "alarms", "watch")


def _refuse_changes(config: RunConfig, before: dict[str, Any]) -> None:
    """A run goes on as it was begun; only how long, and how it is looked at, may be another."""
    now = config.model_dump(mode="json")
    for key, value in before.items():
        if key not in _MAY_CHANGE and now.get(key) != value:
            raise BadInput(f"config.toml: {key} is not what the run was begun with; begin another run for that")
