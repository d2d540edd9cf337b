"""The loop: context, question, answer, tools, record, limits. The same one trains and works.

A rollout keeps four things in step: the conversation, the file tree, what the agent has in hand, and the record. Every
turn ends with all four saved together, so it can be continued, gone back to or forked at any turn.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from gametape.agent import compaction
from gametape.agent.agent_state import AgentState
from gametape.agent.breaker import BreakerTripped, NullBreaker, RolloutBreaker, RolloutTrip
from gametape.agent.constraints import Constraints
from gametape.agent.events import RolloutEvent
from gametape.agent.limits import RolloutEnd, RolloutLimits
from gametape.agent.recorder import (
    MemoryRecorder,
    StepRecorder,
    message_step,
    step_text,
    turn_step,
    usage_from_steps,
)
from gametape.agent.replay import active_steps, as_copied_context, checkpoint_at, replay_conversation, restore_directory
from gametape.agent.tool_router import RoutedTurn, ToolRouter
from gametape.core.errors import GametapeError
from gametape.core.protocols import Tool, Workspace
from gametape.core.step import Step
from gametape.engines.conversation import Conversation, Reply, ToolDefinition
from gametape.engines.errors import ContextTooLong, EngineError
from gametape.sandbox.keeper_client import SandboxError
from gametape.sandbox.snapshots.errors import StoreFull

_PRUNE_EVERY = 8
ToolFactory = Callable[[AgentState], Sequence[Tool]]
StepCallback = Callable[[Step], None]


@dataclass(frozen=True)
class RolloutConfig:
    """What does not change while a rollout runs, and what its forks share."""

    make_tools: ToolFactory
    start_conversation: Callable[[], Conversation]
    window: int
    limits: RolloutLimits = field(default_factory=RolloutLimits)
    constraints: Constraints = field(default_factory=Constraints)
    changed_paths: Callable[[str, str], Iterable[str]] = lambda _before, _after: ()
    """The paths that differ between two checkpoints, to see what a command has done to forbidden ones."""
    prune_checkpoints: Callable[[Iterable[str]], object] | None = None
    """Drops old checkpoints where they take too much room, but none of these; None where they take none."""
    on_step: StepCallback = lambda _step: None
    reply_ends_run: bool = False
    """Whether an answer without a call ends the run, because somebody waits for it."""
    make_breaker: Callable[[], RolloutBreaker] = NullBreaker
    """Makes what watches over a rollout and may ask for a halt; each has its own."""

    @property
    def turn_tokens(self) -> int:
        """A turn never takes more than a quarter of the window, or there would be no room for anything to read."""
        return max(1, min(self.limits.turn_tokens, self.window // 4))

    @property
    def max_prompt_tokens(self) -> int:
        """How long a conversation may be when a question is asked."""
        return min(self.window, self.limits.context_tokens or self.window) - self.turn_tokens


class Rollout:
    """One agent at work. `run` until it is over; `go_back` and `fork` in between."""

    def __init__(
        self,
        config: RolloutConfig,
        workspace: Workspace,
        recorder: StepRecorder,
        state: AgentState,
        conversation: Conversation,
    ) -> None:
        self.config = config
        self.workspace = workspace
        self.recorder = recorder
        self.conversation = conversation
        self.usage = usage_from_steps(recorder.steps)
        self._breaker = self._breaker_of(active_steps(recorder.steps))
        self._use_state(state)

    @classmethod
    async def begin(
        cls, config: RolloutConfig, workspace: Workspace, recorder: StepRecorder, system_prompt: str, user_prompt: str
    ) -> "Rollout":
        """The first two steps: what stands for the whole rollout, and what there is to do. Whoever was killed between
        them begins with the second."""
        rollout = cls(config, workspace, recorder, AgentState(), config.start_conversation())
        if not recorder.steps:
            await recorder.append(message_step(1, "system", system_prompt))
        system_prompt = step_text(recorder.steps[0])
        checkpoint = await workspace.snapshot()
        await recorder.append(message_step(2, "user", user_prompt, checkpoint=checkpoint))
        rollout.conversation.begin(system_prompt, rollout.definitions, user_prompt)
        return rollout

    @classmethod
    async def resume(cls, config: RolloutConfig, workspace: Workspace, recorder: StepRecorder) -> "Rollout":
        """Go on after the last finished turn, in an environment opened at `last_checkpoint`: whatever was done after
        it has not happened."""
        line = active_steps(recorder.steps)
        rollout = cls(config, workspace, recorder, checkpoint_at(line)[1], config.start_conversation())
        await restore_directory(workspace, rollout.state)
        replay_conversation(rollout.conversation, line, rollout.definitions)
        return rollout

    async def run(self) -> RolloutEnd:
        """Turn after turn until it is over."""
        try:
            while True:
                await self.turn()
        except RolloutEnd as over:
            return over
        except GametapeError as error:
            return RolloutEnd("error", str(error))

    async def turn(self) -> Step:
        """One question, its answer, and what came of it. Raises `Over` when there is none any more."""
        self.usage.check(self.config.limits)
        await self._handle_trip(self._breaker.take_trip())
        await self._make_room()
        reply = await self._ask()
        self.state.turn = self.usage.turns
        routed = await self._router.route(reply, self.workspace, self.usage)
        step = await self._record(reply, routed)
        if routed.finished:
            raise RolloutEnd(None, "finished")
        self._send_results(routed)
        return step

    async def rewind(self, step_id: int) -> None:
        """Undo everything after a step: files, conversation and what is in hand. The record keeps what was undone."""
        line = active_steps(self.recorder.steps, step_id)
        checkpoint, work = checkpoint_at(line, step_id)
        await self.workspace.restore(checkpoint)
        await restore_directory(self.workspace, work)
        told = f"Went back to the state after step {step_id}."
        marker = message_step(
            self._next_id, "system", told, compacted=True, rolled_back_to=step_id, checkpoint=checkpoint
        )
        await self.recorder.append(marker)
        self._use_state(work)
        self.conversation = self._conversation_of(line)
        self._breaker = self._breaker_of(line)

    async def fork(self, step_id: int, recorder: StepRecorder | None = None) -> "Rollout":
        """A second rollout from the state after a step. What it shares with this one is marked as copied."""
        line = active_steps(self.recorder.steps, step_id)
        checkpoint, work = checkpoint_at(line, step_id)
        recorder = recorder or MemoryRecorder()
        for number, step in enumerate(line, start=1):
            await recorder.append(as_copied_context(step, number))
        environment = await self.workspace.fork(checkpoint)
        await restore_directory(environment, work)
        return Rollout(self.config, environment, recorder, work, self._conversation_of(line))

    @property
    def definitions(self) -> Sequence[ToolDefinition]:
        return [tool.definition for tool in self._tools]

    # The parts of a turn

    async def _ask(self) -> Reply:
        try:
            reply = await self.conversation.ask(self.config.turn_tokens)
        except ContextTooLong:
            await self._compact()
            try:
                reply = await self.conversation.ask(self.config.turn_tokens)
            except ContextTooLong as error:
                raise RolloutEnd("limit", f"the context is full even after compaction: {error}") from error
        except EngineError as trouble:
            events = [
                event.to_dict() for event in (*_failures(self.conversation), RolloutEvent("engine", str(trouble)))
            ]
            told = message_step(self._next_id, "system", f"The model did not answer: {trouble}", events=events)
            await self.recorder.append(told)
            raise
        self.usage.turns += 1
        self.usage.add(reply.usage)
        return reply

    async def _record(self, reply: Reply, routed: RoutedTurn, **ours: object) -> Step:
        """Save the file tree, then the step that names it: a step on record always has its tree."""
        checkpoint = await self._save(routed)
        spent = self.usage
        step = turn_step(
            self._next_id,
            reply,
            routed,
            [*_failures(self.conversation), *routed.events],
            checkpoint=checkpoint,
            work=self.state.data,
            seconds=round(spent.seconds, 3),
            tool_seconds=round(spent.tool_seconds, 4),
            cpu_seconds=round(spent.cpu_seconds, 4),
            **ours,
        )
        await self.recorder.append(step)
        self.config.on_step(step)
        self._breaker(step)
        return step

    def _send_results(self, routed: RoutedTurn) -> None:
        if routed.answers:
            self.conversation.add_tool_responses(routed.answers)
        if routed.notice:
            self.conversation.add_user_message(routed.notice)

    async def _save(self, routed: RoutedTurn) -> str:
        """Name the file tree as it is now. Where the sandbox has died there is none: the last one is taken up again."""
        if not routed.sandbox_died:
            try:
                return await self._undo_forbidden(await self._snapshot(), routed)
            except StoreFull as error:
                routed.events.append(RolloutEvent("checkpoint_dropped", str(error)))
                return await self._undo(routed, "the workspace has taken up more room than there is for it")
            except SandboxError as error:
                routed.events.append(RolloutEvent("sandbox_death", f"after the turn: {error}"))
                routed.notice = "The sandbox died after this turn. The workspace is as it was before this turn."
        self.usage.sandbox_deaths += 1
        if self.usage.sandbox_deaths > self.config.limits.sandbox_deaths:
            raise RolloutEnd("error", f"the sandbox died {self.usage.sandbox_deaths} times")
        return await self._restore_last()

    async def _snapshot(self) -> str:
        """Old checkpoints go before there is no room for new ones: all but the first and the last."""
        if tidy := self.config.prune_checkpoints:
            line = active_steps(self.recorder.steps)
            if len(line) % _PRUNE_EVERY == 0:
                first = next(step.gametape_extra.checkpoint for step in line if step.gametape_extra.checkpoint)
                await asyncio.to_thread(tidy, (first, checkpoint_at(line)[0]))
        return await self.workspace.snapshot()

    async def _undo_forbidden(self, checkpoint: str, routed: RoutedTurn) -> str:
        """A command is judged by its text before it runs, and by what it changed afterwards: then all is undone."""
        constraints = self.config.constraints
        if not (constraints.unwritable or constraints.unreadable or constraints.branches):
            return checkpoint
        before = checkpoint_at(active_steps(self.recorder.steps))[0]
        breaches = constraints.path_breaches(self.config.changed_paths(before, checkpoint))
        if not breaches:
            return checkpoint
        routed.events.append(RolloutEvent("constraint", str(breaches[0])))
        return await self._undo(routed, f"it changed what is {breaches[0]}")

    async def _undo(self, routed: RoutedTurn, why: str) -> str:
        routed.notice = f"Undone, with everything else in this turn: {why}."
        return await self._restore_last()

    async def _restore_last(self) -> str:
        checkpoint, work = checkpoint_at(active_steps(self.recorder.steps))
        await self.workspace.restore(checkpoint)
        await restore_directory(self.workspace, work)
        self._use_state(work)
        return checkpoint

    async def _make_room(self) -> None:
        if self.conversation.length > self.config.max_prompt_tokens:
            await self._compact()

    async def _handle_trip(self, trip: RolloutTrip | None) -> None:
        """Do what the breaker asks for, and keep it on record with its evidence."""
        if trip is None:
            return
        if trip.rung in ("pause", "stop"):
            over = BreakerTripped(trip)
            await self._record_trip("system", over.reason, trip)
            raise over
        most = min(self.conversation.length, self.config.max_prompt_tokens)
        if trip.rung == "nudge" or not await self._restart_compacted(most, trip):
            await self._record_trip("user", trip.nudge, trip)
            self.conversation.add_user_message(trip.nudge)

    async def _record_trip(self, source: str, text: str, trip: RolloutTrip) -> None:
        step = message_step(self._next_id, source, text, events=[trip.to_dict()])
        await self.recorder.append(step)
        self.config.on_step(step)

    async def _compact(self) -> None:
        """Make room, or end: a context that cannot be made smaller by three tenths would only fill up again."""
        before = self.conversation.length
        most = int(compaction.MAX_COMPACTED_SHARE * min(before, self.config.max_prompt_tokens))
        if not await self._restart_compacted(most):
            raise RolloutEnd("limit", f"the context is full: {before} tokens, and compaction cannot make them {most}")

    async def _restart_compacted(self, most: int, trip: RolloutTrip | None = None) -> bool:
        """Begin the conversation anew from the frontier, in at most so many tokens; at most two tries."""
        line = active_steps(self.recorder.steps)
        before = self.conversation.length
        files = "\n".join(filter(None, [self.state.describe(), await self.state.render(self.workspace)]))
        fresh = await compaction.compact_context(self.conversation, line, self.definitions, files, most, self._summary)
        if fresh is None:
            return False
        told = RolloutEvent("compaction", f"{before} tokens became {fresh.length}")
        events = [told.to_dict(), *([trip.to_dict()] if trip else [])]
        text = f"{fresh.text}\n\n{trip.nudge}" if trip else fresh.text
        saved = {"checkpoint": checkpoint_at(line)[0], "work": self.state.data, "events": events}
        step = message_step(self._next_id, "user", text, compacted=True, **saved)
        await self.recorder.append(step)
        self.config.on_step(step)
        self.conversation.begin(fresh.system, self.definitions, text)
        return True

    async def _summary(self) -> str:
        """The model's own, if there is room to ask for it; nothing depends on what it says. It is asked beside the
        conversation, whose turns do not count it."""
        aside = self.conversation.fork()
        aside.add_user_message(compaction.SUMMARY_REQUEST)
        if aside.length + compaction.SUMMARY_TOKENS > self.config.window:
            return ""
        try:
            reply = await aside.ask(compaction.SUMMARY_TOKENS)
        except (EngineError, ContextTooLong):
            return ""
        self.usage.add(reply.usage)
        await self.recorder.append(message_step(self._next_id, "user", compaction.SUMMARY_REQUEST, summary=True))
        await self._record(reply, RoutedTurn(), summary=True)
        return reply.text.strip()

    # Keeping things in step

    @property
    def _next_id(self) -> int:
        return len(self.recorder.steps) + 1

    def _use_state(self, state: AgentState) -> None:
        self.state = state
        self._tools = self.config.make_tools(state)
        self._router = ToolRouter(self._tools, self.config.limits, self.config.constraints, self.config.reply_ends_run)

    def _breaker_of(self, steps: Sequence[Step]) -> RolloutBreaker:
        breaker = self.config.make_breaker()
        breaker.replay(steps)
        return breaker

    def _conversation_of(self, steps: Sequence[Step]) -> Conversation:
        conversation = self.config.start_conversation()
        replay_conversation(conversation, steps, self.definitions)
        return conversation


def _failures(conversation: Conversation) -> list[RolloutEvent]:
    """Questions that had to be asked again."""
    return [RolloutEvent("engine", str(failure)) for failure in getattr(conversation, "failures", ())]
