"""The loop: context, question, answer, tools, record, limits. The same one trains and works.

A rollout keeps four things in step: the conversation, the file tree, what the agent has in hand, and the record. Every
turn ends with all four saved together, so it can be continued, gone back to or forked at any turn.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from gametape.agent import compaction
from gametape.agent.breaking import Breaker, NoBreaker, Trip, Tripped
from gametape.agent.checkpoints import copied, enter, saved_at
from gametape.agent.constraints import Constraints
from gametape.agent.events import Event
from gametape.agent.limits import Limits, Over
from gametape.agent.recording import InMemory, Recorder, said_step, spent_in, text_of, turn_step
from gametape.agent.replay import line_of, replay
from gametape.agent.routing import Routed, Routing
from gametape.agent.work import Work
from gametape.core.errors import GametapeError
from gametape.core.protocols import Environment, Tool
from gametape.core.step import Step
from gametape.engines.conversation import Conversation, Reply, ToolDefinition
from gametape.engines.trouble import EngineTrouble, TooLong
from gametape.sandbox.launcher import SandboxError
from gametape.sandbox.snapshots.trouble import StoreFull

_TIDY_EVERY = 8
Toolmaker = Callable[[Work], Sequence[Tool]]
Watcher = Callable[[Step], None]


@dataclass(frozen=True)
class Setting:
    """What does not change while a rollout runs, and what its forks share."""

    toolmaker: Toolmaker
    converse: Callable[[], Conversation]
    window: int
    limits: Limits = field(default_factory=Limits)
    constraints: Constraints = field(default_factory=Constraints)
    changed: Callable[[str, str], Iterable[str]] = lambda _before, _after: ()
    """The paths that differ between two checkpoints, to see what a command has done to forbidden ones."""
    tidy: Callable[[Iterable[str]], object] | None = None
    """Drops old checkpoints where they take too much room, but none of these; None where they take none."""
    watch: Watcher = lambda _step: None
    conversing: bool = False
    """Whether an answer without a call ends the run, because somebody waits for it."""
    breaker: Callable[[], Breaker] = NoBreaker
    """Makes what watches over a rollout and may ask for a halt; each has its own."""

    @property
    def turn_tokens(self) -> int:
        """A turn never takes more than a quarter of the window, or there would be no room for anything to read."""
        return max(1, min(self.limits.turn_tokens, self.window // 4))

    @property
    def room(self) -> int:
        """How long a conversation may be when a question is asked."""
        return min(self.window, self.limits.context_tokens or self.window) - self.turn_tokens


class Rollout:
    """One agent at work. `run` until it is over; `go_back` and `fork` in between."""

    def __init__(
        self, setting: Setting, environment: Environment, recorder: Recorder, work: Work, conversation: Conversation
    ) -> None:
        self.setting = setting
        self.environment = environment
        self.recorder = recorder
        self.conversation = conversation
        self.spent = spent_in(recorder.steps)
        self._breaker = self._breaker_of(line_of(recorder.steps))
        self._take_up(work)

    @classmethod
    async def begin(
        cls, setting: Setting, environment: Environment, recorder: Recorder, system: str, opening: str
    ) -> "Rollout":
        """The first two steps: what stands for the whole rollout, and what there is to do. Whoever was killed between
        them begins with the second."""
        rollout = cls(setting, environment, recorder, Work(), setting.converse())
        if not recorder.steps:
            await recorder.append(said_step(1, "system", system))
        system = text_of(recorder.steps[0])
        checkpoint = await environment.snapshot()
        await recorder.append(said_step(2, "user", opening, checkpoint=checkpoint))
        rollout.conversation.begin(system, rollout.definitions, opening)
        return rollout

    @classmethod
    async def resume(cls, setting: Setting, environment: Environment, recorder: Recorder) -> "Rollout":
        """Go on after the last finished turn, in an environment opened at `last_checkpoint`: whatever was done after
        it has not happened."""
        line = line_of(recorder.steps)
        rollout = cls(setting, environment, recorder, saved_at(line)[1], setting.converse())
        await enter(environment, rollout.work)
        replay(rollout.conversation, line, rollout.definitions)
        return rollout

    async def run(self) -> Over:
        """Turn after turn until it is over."""
        try:
            while True:
                await self.turn()
        except Over as over:
            return over
        except GametapeError as error:
            return Over("error", str(error))

    async def turn(self) -> Step:
        """One question, its answer, and what came of it. Raises `Over` when there is none any more."""
        self.spent.check(self.setting.limits)
        await self._heed(self._breaker.take())
        await self._make_room()
        reply = await self._ask()
        self.work.turn = self.spent.turns
        routed = await self._routing.route(reply, self.environment, self.spent)
        step = await self._record(reply, routed)
        if routed.finished:
            raise Over(None, "finished")
        self._say(routed)
        return step

    async def go_back(self, step_id: int) -> None:
        """Undo everything after a step: files, conversation and what is in hand. The record keeps what was undone."""
        line = line_of(self.recorder.steps, step_id)
        checkpoint, work = saved_at(line, step_id)
        await self.environment.restore(checkpoint)
        await enter(self.environment, work)
        told = f"Went back to the state after step {step_id}."
        marker = said_step(self._next_id, "system", told, compacted=True, rolled_back_to=step_id, checkpoint=checkpoint)
        await self.recorder.append(marker)
        self._take_up(work)
        self.conversation = self._conversation_of(line)
        self._breaker = self._breaker_of(line)

    async def fork(self, step_id: int, recorder: Recorder | None = None) -> "Rollout":
        """A second rollout from the state after a step. What it shares with this one is marked as copied."""
        line = line_of(self.recorder.steps, step_id)
        checkpoint, work = saved_at(line, step_id)
        recorder = recorder or InMemory()
        for number, step in enumerate(line, start=1):
            await recorder.append(copied(step, number))
        environment = await self.environment.fork(checkpoint)
        await enter(environment, work)
        return Rollout(self.setting, environment, recorder, work, self._conversation_of(line))

    @property
    def definitions(self) -> Sequence[ToolDefinition]:
        return [tool.definition for tool in self._tools]

    # The parts of a turn

    async def _ask(self) -> Reply:
        try:
            reply = await self.conversation.ask(self.setting.turn_tokens)
        except TooLong:
            await self._compact()
            try:
                reply = await self.conversation.ask(self.setting.turn_tokens)
            except TooLong as error:
                raise Over("limit", f"the context is full even after compaction: {error}") from error
        except EngineTrouble as trouble:
            events = [event.plain() for event in (*_failures(self.conversation), Event("engine", str(trouble)))]
            told = said_step(self._next_id, "system", f"The model did not answer: {trouble}", events=events)
            await self.recorder.append(told)
            raise
        self.spent.turns += 1
        self.spent.charge(reply.usage)
        return reply

    async def _record(self, reply: Reply, routed: Routed, **ours: object) -> Step:
        """Save the file tree, then the step that names it: a step on record always has its tree."""
        checkpoint = await self._save(routed)
        spent = self.spent
        step = turn_step(
            self._next_id,
            reply,
            routed,
            [*_failures(self.conversation), *routed.events],
            checkpoint=checkpoint,
            work=self.work.data,
            seconds=round(spent.seconds, 3),
            tool_seconds=round(spent.tool_seconds, 4),
            cpu_seconds=round(spent.cpu_seconds, 4),
            **ours,
        )
        await self.recorder.append(step)
        self.setting.watch(step)
        self._breaker(step)
        return step

    def _say(self, routed: Routed) -> None:
        if routed.answers:
            self.conversation.answer(routed.answers)
        if routed.notice:
            self.conversation.tell(routed.notice)

    async def _save(self, routed: Routed) -> str:
        """Name the file tree as it is now. Where the sandbox has died there is none: the last one is taken up again."""
        if not routed.died:
            try:
                return await self._undo_forbidden(await self._snapshot(), routed)
            except StoreFull as error:
                routed.events.append(Event("checkpoint_dropped", str(error)))
                return await self._undo(routed, "the workspace has taken up more room than there is for it")
            except SandboxError as error:
                routed.events.append(Event("sandbox_death", f"after the turn: {error}"))
                routed.notice = "The sandbox died after this turn. The workspace is as it was before this turn."
        self.spent.sandbox_deaths += 1
        if self.spent.sandbox_deaths > self.setting.limits.sandbox_deaths:
            raise Over("error", f"the sandbox died {self.spent.sandbox_deaths} times")
        return await self._restore_last()

    async def _snapshot(self) -> str:
        """Old checkpoints go before there is no room for new ones: all but the first and the last."""
        if tidy := self.setting.tidy:
            line = line_of(self.recorder.steps)
            if len(line) % _TIDY_EVERY == 0:
                first = next(step.ours.checkpoint for step in line if step.ours.checkpoint)
                await asyncio.to_thread(tidy, (first, saved_at(line)[0]))
        return await self.environment.snapshot()

    async def _undo_forbidden(self, checkpoint: str, routed: Routed) -> str:
        """A command is judged by its text before it runs, and by what it changed afterwards: then all is undone."""
        constraints = self.setting.constraints
        if not (constraints.unwritable or constraints.unreadable or constraints.branches):
            return checkpoint
        before = saved_at(line_of(self.recorder.steps))[0]
        breaches = constraints.breaches_in(self.setting.changed(before, checkpoint))
        if not breaches:
            return checkpoint
        routed.events.append(Event("constraint", str(breaches[0])))
        return await self._undo(routed, f"it changed what is {breaches[0]}")

    async def _undo(self, routed: Routed, why: str) -> str:
        routed.notice = f"Undone, with everything else in this turn: {why}."
        return await self._restore_last()

    async def _restore_last(self) -> str:
        checkpoint, work = saved_at(line_of(self.recorder.steps))
        await self.environment.restore(checkpoint)
        await enter(self.environment, work)
        self._take_up(work)
        return checkpoint

    async def _make_room(self) -> None:
        if self.conversation.length > self.setting.room:
            await self._compact()

    async def _heed(self, trip: Trip | None) -> None:
        """Do what the breaker asks for, and keep it on record with its evidence."""
        if trip is None:
            return
        if trip.rung in ("pause", "stop"):
            over = Tripped(trip)
            await self._tell_apart("system", over.reason, trip)
            raise over
        most = min(self.conversation.length, self.setting.room)
        if trip.rung == "nudge" or not await self._begin_afresh(most, trip):
            await self._tell_apart("user", trip.nudge, trip)
            self.conversation.tell(trip.nudge)

    async def _tell_apart(self, source: str, text: str, trip: Trip) -> None:
        step = said_step(self._next_id, source, text, events=[trip.plain()])
        await self.recorder.append(step)
        self.setting.watch(step)

    async def _compact(self) -> None:
        """Make room, or end: a context that cannot be made smaller by three tenths would only fill up again."""
        before = self.conversation.length
        most = int(compaction.MUST_SHRINK_TO * min(before, self.setting.room))
        if not await self._begin_afresh(most):
            raise Over("limit", f"the context is full: {before} tokens, and compaction cannot make them {most}")

    async def _begin_afresh(self, most: int, trip: Trip | None = None) -> bool:
        """Begin the conversation anew from the frontier, in at most so many tokens; at most two tries."""
        line = line_of(self.recorder.steps)
        before = self.conversation.length
        files = "\n".join(filter(None, [self.work.describe(), await self.work.render(self.environment)]))
        fresh = await compaction.fresh_context(self.conversation, line, self.definitions, files, most, self._summary)
        if fresh is None:
            return False
        told = Event("compaction", f"{before} tokens became {fresh.length}")
        events = [told.plain(), *([trip.plain()] if trip else [])]
        text = f"{fresh.text}\n\n{trip.nudge}" if trip else fresh.text
        saved = {"checkpoint": saved_at(line)[0], "work": self.work.data, "events": events}
        step = said_step(self._next_id, "user", text, compacted=True, **saved)
        await self.recorder.append(step)
        self.setting.watch(step)
        self.conversation.begin(fresh.system, self.definitions, text)
        return True

    async def _summary(self) -> str:
        """The model's own, if there is room to ask for it; nothing depends on what it says. It is asked beside the
        conversation, whose turns do not count it."""
        aside = self.conversation.fork()
        aside.tell(compaction.ASK_FOR_SUMMARY)
        if aside.length + compaction.SUMMARY_TOKENS > self.setting.window:
            return ""
        try:
            reply = await aside.ask(compaction.SUMMARY_TOKENS)
        except (EngineTrouble, TooLong):
            return ""
        self.spent.charge(reply.usage)
        await self.recorder.append(said_step(self._next_id, "user", compaction.ASK_FOR_SUMMARY, summary=True))
        await self._record(reply, Routed(), summary=True)
        return reply.text.strip()

    # Keeping things in step

    @property
    def _next_id(self) -> int:
        return len(self.recorder.steps) + 1

    def _take_up(self, work: Work) -> None:
        self.work = work
        self._tools = self.setting.toolmaker(work)
        self._routing = Routing(self._tools, self.setting.limits, self.setting.constraints, self.setting.conversing)

    def _breaker_of(self, line: Sequence[Step]) -> Breaker:
        breaker = self.setting.breaker()
        breaker.recall(line)
        return breaker

    def _conversation_of(self, line: Sequence[Step]) -> Conversation:
        conversation = self.setting.converse()
        replay(conversation, line, self.definitions)
        return conversation


def _failures(conversation: Conversation) -> list[Event]:
    """Questions that had to be asked again."""
    return [Event("engine", str(failure)) for failure in getattr(conversation, "failures", ())]
