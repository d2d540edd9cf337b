"""The agent loop: ask the model, run its tool calls, record the turn, check limits. Training and real work share it.

A rollout keeps four things in step: the conversation, the file tree, the agent's state and the record. Every turn ends
with all four saved together, so a rollout can be resumed, rewound or forked at any turn.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from gametape.agent import compaction
from gametape.agent.agent_state import AgentState
from gametape.agent.breaker import BreakerTripped, NullBreaker, RolloutBreaker, RolloutTrip
from gametape.agent.budget import ToldBudget
from gametape.agent.constraints import Constraints
from gametape.agent.events import RolloutEvent
from gametape.agent.limits import RolloutEnd, RolloutLimits
from gametape.agent.output_room import OutputRoom
from gametape.agent.recorded_steps import step_text
from gametape.agent.recorder import MemoryRecorder, StepRecorder, message_step, turn_step
from gametape.agent.replay import (
    active_record,
    active_steps,
    as_copied_context,
    checkpoint_at,
    observed_steps_of,
    replay_conversation,
    replay_record,
    restore_directory,
)
from gametape.agent.tool_router import RoutedTurn, ToolRouter
from gametape.core.errors import GametapeError
from gametape.core.messages import Sampling
from gametape.core.protocols import Tool, Workspace
from gametape.core.step import Step
from gametape.engines.conversation import Conversation, Model, Reply, ToolDefinition
from gametape.engines.errors import ContextTooLong, EngineError
from gametape.engines.router import escalate
from gametape.sandbox.keeper_client import SandboxError
from gametape.sandbox.snapshots.errors import StoreFull

_PRUNE_EVERY = 8
ToolFactory = Callable[[AgentState], Sequence[Tool]]
StepCallback = Callable[[Step], None]


@dataclass(frozen=True)
class RolloutConfig:
    """What an agent works with. It does not change while a rollout runs, and forks share it."""

    model: Model
    make_tools: ToolFactory
    """Makes the tools over an agent's state. A fork has its own state, and so its own tools."""
    name: str = ""
    """Names the conversation for the engine."""
    sampling: Sampling = field(default_factory=Sampling)
    constrained_decoding: bool = False
    wrap_conversation: Callable[[Conversation], Conversation] = lambda conversation: conversation
    limits: RolloutLimits = field(default_factory=RolloutLimits)
    constraints: Constraints = field(default_factory=Constraints)
    changed_paths: Callable[[str, str], Iterable[str]] = lambda _before, _after: ()
    """The paths that differ between two checkpoints, to find forbidden ones that a command changed."""
    prune_checkpoints: Callable[[Iterable[str]], object] | None = None
    """Drops old checkpoints where they take too much room, except the given ones; None drops nothing."""
    on_step: StepCallback = lambda _step: None
    reply_ends_run: bool = False
    """Whether a reply without a tool call ends the run, as in a conversation with a person."""
    make_breaker: Callable[[], RolloutBreaker] = NullBreaker
    """Makes the breaker of a rollout; each rollout has its own."""
    told_budget: ToldBudget | None = None
    """The budgets that the agent is reminded of; None where it is told nothing, as in training and evaluation."""

    def start_conversation(self) -> Conversation:
        return self.wrap_conversation(
            self.model.start_conversation(self.sampling, self.name, self.constrained_decoding)
        )

    @property
    def turn_tokens(self) -> int:
        """The tokens that one turn may have: at most a quarter of the window, so that there is room to read."""
        return max(1, min(self.limits.turn_tokens, self.model.window // 4))

    @property
    def max_prompt_tokens(self) -> int:
        """The longest conversation that the model is asked to continue."""
        window = self.model.window
        return min(window, self.limits.context_tokens or window) - self.turn_tokens

    @property
    def output_room(self) -> OutputRoom:
        window = min(self.model.window, self.limits.context_tokens or self.model.window)
        return OutputRoom.for_window(window, self.limits.output_characters)


class Rollout:
    """One agent at work. `run` it to its end; `rewind` and `fork` it between turns."""

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
        self.usage = recorder.digest.used()
        self._breaker = self._replayed_breaker(observed_steps_of(recorder))
        self._use_state(state)

    @classmethod
    async def begin(
        cls, config: RolloutConfig, workspace: Workspace, recorder: StepRecorder, system_prompt: str, user_prompt: str
    ) -> "Rollout":
        """Record the first two steps, the system prompt and the user prompt. A rollout that was killed between the two
        begins with the second."""
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
        """Continue after the last finished turn, in a workspace opened at `last_checkpoint`. A turn that was cut off
        has not happened."""
        state = checkpoint_at(active_record(recorder))[1]
        rollout = cls(config, workspace, recorder, state, config.start_conversation())
        await restore_directory(workspace, rollout.state)
        replay_record(rollout.conversation, recorder, rollout.definitions)
        return rollout

    async def run(self) -> RolloutEnd:
        """Run turns until the rollout ends."""
        try:
            while True:
                await self.turn()
        except RolloutEnd as end:
            return end
        except GametapeError as error:
            return RolloutEnd.from_error(error)

    async def turn(self) -> Step:
        """One query, its tool calls and their results. Raises `RolloutEnd` when there is no further turn."""
        self.usage.check(self.config.limits)
        budget = self.config.told_budget
        before = budget.items(self.usage) if budget else []
        await self._handle_trip(self._breaker.take_trip())
        if self.conversation.length > self.config.max_prompt_tokens:
            await self._compact()
        reply = await self._ask()
        self._use_window()
        self.state.turn = self.usage.turns
        routed = await self._router.route(reply, self.workspace, self.usage)
        if budget and not routed.finished:
            routed.add_notice(budget.notice(before, budget.items(self.usage)))
        step = await self._record(reply, routed)
        if routed.finished:
            raise RolloutEnd(None, "finished")
        self._send_results(routed)
        return step

    async def rewind(self, step_id: int) -> None:
        """Undo everything after a step: files, conversation and agent state. The record keeps the undone steps."""
        steps = active_steps(self.recorder.steps, step_id)
        checkpoint, state = checkpoint_at(steps, step_id)
        await self.workspace.restore(checkpoint)
        await restore_directory(self.workspace, state)
        text = f"Went back to the state after step {step_id}."
        marker = message_step(
            self._next_id, "system", text, compacted=True, rolled_back_to=step_id, checkpoint=checkpoint
        )
        await self.recorder.append(marker)
        self._use_state(state)
        self.conversation = self._replayed_conversation(steps)
        self._breaker = self._replayed_breaker(steps)

    async def fork(self, step_id: int, recorder: StepRecorder | None = None) -> "Rollout":
        """A second rollout from the state after a step. The steps that it shares with this one are marked as copied."""
        steps = active_steps(self.recorder.steps, step_id)
        checkpoint, state = checkpoint_at(steps, step_id)
        recorder = recorder or MemoryRecorder()
        for number, step in enumerate(steps, start=1):
            await recorder.append(as_copied_context(step, number))
        workspace = await self.workspace.fork(checkpoint)
        await restore_directory(workspace, state)
        return Rollout(self.config, workspace, recorder, state, self._replayed_conversation(steps))

    @property
    def definitions(self) -> Sequence[ToolDefinition]:
        return [tool.definition for tool in self._tools]

    async def _ask(self) -> Reply:
        try:
            reply = await self.conversation.ask(self.config.turn_tokens)
        except ContextTooLong:
            await self._compact()
            try:
                reply = await self.conversation.ask(self.config.turn_tokens)
            except ContextTooLong as error:
                raise await self._context_full(f"the context is full even after compaction: {error}") from error
        except EngineError as error:
            failures = (*_failures(self.conversation), RolloutEvent("engine", str(error)))
            events = [event.to_dict() for event in failures]
            step = message_step(self._next_id, "system", f"The model did not answer: {error}", events=events)
            await self.recorder.append(step)
            raise
        self.usage.turns += 1
        self.usage.cut_off += reply.finish == "length"
        self.usage.add(reply.usage)
        return reply

    async def _record(self, reply: Reply, routed: RoutedTurn, **extra: object) -> Step:
        """Save the file tree, then the step that names it: a recorded step always has its tree."""
        checkpoint = await self._save(routed)
        usage = self.usage
        step = turn_step(
            self._next_id,
            reply,
            routed,
            [*_failures(self.conversation), *routed.events],
            checkpoint=checkpoint,
            work=self.state.data,
            seconds=round(usage.seconds, 3),
            tool_seconds=round(usage.tool_seconds, 4),
            cpu_seconds=round(usage.cpu_seconds, 4),
            **extra,
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
        """Save the file tree as it is now. Where the sandbox has died, the last saved tree is restored instead."""
        if not routed.sandbox_died:
            try:
                return await self._undo_forbidden(await self._snapshot(), routed)
            except StoreFull as error:
                routed.events.append(RolloutEvent("checkpoint_dropped", str(error)))
                return await self._undo(routed, "the workspace has taken up more room than there is for it")
            except SandboxError as error:
                routed.events.append(RolloutEvent("sandbox_death", f"after the turn: {error}"))
                routed.add_notice("The sandbox died after this turn. The workspace is as it was before this turn.")
        self.usage.sandbox_deaths += 1
        if self.usage.sandbox_deaths > self.config.limits.sandbox_deaths:
            raise RolloutEnd("error", f"the sandbox died {self.usage.sandbox_deaths} times")
        return await self._restore_last()

    async def _snapshot(self) -> str:
        """Old checkpoints are dropped before there is no room for new ones: all but the first and the last."""
        if prune := self.config.prune_checkpoints:
            steps = active_record(self.recorder)
            if len(steps) % _PRUNE_EVERY == 0:
                first = next(step.gametape_extra.checkpoint for step in steps if step.gametape_extra.checkpoint)
                await asyncio.to_thread(prune, (first, checkpoint_at(steps)[0]))
        return await self.workspace.snapshot()

    async def _undo_forbidden(self, checkpoint: str, routed: RoutedTurn) -> str:
        """A command is checked by its text before it runs, and by what it changed afterwards. Where it changed a
        forbidden path, the whole turn is undone."""
        constraints = self.config.constraints
        if not (constraints.unwritable or constraints.unreadable or constraints.branches):
            return checkpoint
        before = checkpoint_at(active_record(self.recorder))[0]
        breaches = constraints.path_breaches(self.config.changed_paths(before, checkpoint))
        if not breaches:
            return checkpoint
        routed.events.append(RolloutEvent("constraint", str(breaches[0])))
        return await self._undo(routed, f"it changed what is {breaches[0]}")

    async def _undo(self, routed: RoutedTurn, why: str) -> str:
        routed.add_notice(f"Undone, with everything else in this turn: {why}.")
        return await self._restore_last()

    async def _restore_last(self) -> str:
        checkpoint, state = checkpoint_at(active_record(self.recorder))
        await self.workspace.restore(checkpoint)
        await restore_directory(self.workspace, state)
        self._use_state(state)
        return checkpoint

    async def _handle_trip(self, trip: RolloutTrip | None) -> None:
        """Do what the breaker asks for, and record it with its evidence."""
        if trip is None:
            return
        escalated = trip.rung != "nudge" and escalate(self.conversation)
        room = self.config.max_prompt_tokens
        max_tokens = room if escalated else min(self.conversation.length, room)
        if (escalated or trip.rung == "fresh_context") and await self._restart_compacted(max_tokens, trip, escalated):
            return
        if trip.rung in ("pause", "stop"):
            end = BreakerTripped(trip)
            await self._record_event("system", end.reason, trip.to_dict())
            raise end
        await self._record_event("user", trip.nudge, trip.to_dict())
        self.conversation.add_user_message(trip.nudge)

    async def _record_event(self, source: str, text: str, event: dict[str, object]) -> None:
        step = message_step(self._next_id, source, text, events=[event])
        await self.recorder.append(step)
        self.config.on_step(step)

    async def _compact(self) -> None:
        """Make room, or end: a context that cannot be made smaller by three tenths would only fill up again."""
        before = self.conversation.length
        max_tokens = int(compaction.MAX_COMPACTED_SHARE * min(before, self.config.max_prompt_tokens))
        if not await self._restart_compacted(max_tokens):
            raise await self._context_full(
                f"the context is full: {before} tokens, and compaction cannot make them {max_tokens}"
            )

    async def _context_full(self, reason: str) -> RolloutEnd:
        """The end of a rollout whose context cannot be made smaller, after it was recorded why."""
        await self._record_event("system", f"No further turn: {reason}", RolloutEvent("context_full", reason).to_dict())
        return RolloutEnd("limit", reason)

    async def _restart_compacted(
        self, max_tokens: int, trip: RolloutTrip | None = None, escalated: bool = False
    ) -> bool:
        """Start a fresh conversation of at most `max_tokens` from the record; False if that cannot be done."""
        before, checkpoint = self.conversation.length, checkpoint_at(active_record(self.recorder))[0]
        files = "\n".join(filter(None, [self.state.describe(), await self.state.render(self.workspace)]))
        fresh = await compaction.compact_context(
            self.conversation, self.recorder, self.definitions, files, max_tokens, self._summary
        )
        if fresh is None:
            return False
        event = RolloutEvent("compaction", f"{before} tokens became {fresh.length}")
        events = [event.to_dict(), *([trip.to_dict()] if trip else [])]
        if trip and escalated:
            events.append(RolloutEvent("escalation", trip.reason).to_dict())
        text = f"{fresh.text}\n\n{trip.nudge}" if trip else fresh.text
        step = message_step(
            self._next_id, "user", text, compacted=True, checkpoint=checkpoint, work=self.state.data, events=events
        )
        await self.recorder.append(step)
        self.config.on_step(step)
        self.conversation.begin(fresh.system, self.definitions, text)
        return True

    async def _summary(self) -> str:
        """The model's own summary; empty where there is no room to ask for it, or no answer. It is asked in a fork of
        the conversation, and does not count as a turn."""
        fork = self.conversation.fork()
        fork.add_user_message(compaction.SUMMARY_REQUEST)
        if fork.length + compaction.SUMMARY_TOKENS > self.config.model.window:
            return ""
        try:
            reply = await fork.ask(compaction.SUMMARY_TOKENS)
        except (EngineError, ContextTooLong):
            return ""
        self.usage.add(reply.usage)
        await self.recorder.append(message_step(self._next_id, "user", compaction.SUMMARY_REQUEST, summary=True))
        await self._record(reply, RoutedTurn(), summary=True)
        return reply.text.strip()

    @property
    def _next_id(self) -> int:
        return len(self.recorder.steps) + 1

    def _use_state(self, state: AgentState) -> None:
        self.state = state
        self._tools = self.config.make_tools(state)
        self._use_window()

    def _use_window(self) -> None:
        """Show as much of outputs as the model's window allows. A server may state a smaller one at any turn."""
        config = self.config
        self.state.max_read_characters = config.output_room.read
        self._router = ToolRouter(
            self._tools, config.limits, config.constraints, config.output_room, config.reply_ends_run
        )

    def _replayed_breaker(self, steps: Sequence[Step]) -> RolloutBreaker:
        breaker = self.config.make_breaker()
        breaker.replay(steps)
        return breaker

    def _replayed_conversation(self, steps: Sequence[Step]) -> Conversation:
        conversation = self.config.start_conversation()
        replay_conversation(conversation, steps, self.definitions)
        return conversation


def _failures(conversation: Conversation) -> list[RolloutEvent]:
    """The queries that had to be sent again."""
    return [RolloutEvent("engine", str(failure)) for failure in getattr(conversation, "failures", ())]
