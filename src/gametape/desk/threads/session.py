"""A session with a thread: send a message, and let the agent work until it answers.

The model's reply is stored before its tool calls run. A turn that a kill cut off is run again from the stored reply: it
is paid for once, its calls are the same, and their effects outside the workspace have the same keys.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from gametape.agent.allowed_hosts import allow_hosts
from gametape.agent.breaker import BreakerTripped
from gametape.agent.budget import ToldBudget
from gametape.agent.limits import RolloutEnd, RolloutLimits, RolloutUsage, cut_off_warnings
from gametape.agent.recorder import JournalRecorder, message_step
from gametape.agent.replay import active_record, checkpoint_at
from gametape.agent.rollout import Rollout, RolloutConfig
from gametape.agent.session import open_workspace
from gametape.agent.tools.history import has_history
from gametape.desk.agent_turns import CancelCheck, run_turns
from gametape.desk.outbox import Outbox
from gametape.desk.threads.agent_setup import (
    check_open,
    drop_old_checkpoints,
    egress_policy_of,
    open_model,
    thread_tools,
    usage_before,
)
from gametape.desk.threads.lifecycle import CHECKPOINT_BYTES
from gametape.desk.threads.thread import Thread, ThreadDirectory
from gametape.desk.threads.thread_record import ThreadRecord
from gametape.desk.threads.turn_result import ThreadTurnResult, TurnEnd, find_turn_result, make_turn_result
from gametape.engines.conversation import Conversation, ConversationWrapper, Model, Reply
from gametape.record.atomic import write_atomically
from gametape.record.journal import Journal
from gametape.record.journal_format import shortened_prompt, whole_prompt
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.snapshots.store import SnapshotStore
from gametape.watch.breaker import BehaviourBreaker
from gametape.watch.monitor_set import MonitorSet

_REPLY: TypeAdapter[Reply] = TypeAdapter(Reply)


@dataclass(frozen=True)
class ThreadReplyCache:
    """Stores one reply together with the number of recorded steps it follows, and its prompt as the journal does: by
    what is new in it. The next reply replaces it."""

    file: Path
    journal: Journal

    def read(self) -> Reply | None:
        try:
            cached = json.loads(self.file.read_bytes())
        except FileNotFoundError:
            return None
        if cached["position"] != len(self.journal.steps):
            return None
        if cached["reply"]["tokens"] is not None:
            prompt = whole_prompt(cached["reply"]["tokens"]["prompt_ids"], self.journal.context)
            cached["reply"]["tokens"]["prompt_ids"] = prompt
        return _REPLY.validate_python(cached["reply"])

    def write(self, reply: Reply) -> None:
        prompt = reply.tokens.prompt_ids if reply.tokens else ()
        if reply.tokens:
            reply = replace(reply, tokens=reply.tokens.model_copy(update={"prompt_ids": ()}))
        document: dict[str, Any] = _REPLY.dump_python(reply, mode="json")
        if reply.tokens:
            document["tokens"]["prompt_ids"] = shortened_prompt(prompt, self.journal.context)
        cached = {"position": len(self.journal.steps), "reply": document}
        write_atomically(self.file, json.dumps(cached).encode())


class ReplyCachedConversation(ConversationWrapper):
    """A conversation that stores each reply, and answers from the cache where it can."""

    def __init__(self, inner: Conversation, cache: ThreadReplyCache) -> None:
        super().__init__(inner)
        self._cache = cache

    @property
    def failures(self) -> Sequence[object]:
        """Requests that had to be repeated, where the conversation counts them."""
        return getattr(self._inner, "failures", ())

    async def ask(self, max_tokens: int) -> Reply:
        cached = self._cache.read()
        if cached is not None:
            self._inner.replay(cached)
            return cached
        reply = await self._inner.ask(max_tokens)
        self._cache.write(reply)
        return reply


_TURN_ENDS: dict[str | None, TurnEnd] = {None: "answered", "limit": "limit", "cancelled": "cancelled"}


@dataclass(frozen=True)
class ThreadMessage:
    """A message. One with a known key is not sent again."""

    text: str
    key: str
    origin: str = "person"
    budget_tokens: int | None = None
    """The limit of this answer, beside the budget of the thread."""
    anyway: bool = False
    """Go on with a thread that is paused."""
    budget_usd: float | None = None
    max_turns: int | None = None
    max_turn_tokens: int | None = None
    max_seconds: float | None = None


@dataclass(frozen=True)
class ThreadSession:
    """Sends messages to one thread."""

    home: Path
    directory: ThreadDirectory
    outbox: Outbox

    async def send(self, message: ThreadMessage, cancelled: CancelCheck) -> ThreadTurnResult:
        """Send a message and let the agent work until it answers or reaches a limit. `cancelled` is asked every turn.

        Raises `ThreadRefused` where the thread takes no messages, and `GametapeError` where it cannot be opened.
        """
        thread = self.directory.read()
        record = ThreadRecord.open(self.directory)
        is_new = not record.knows_message(message.key)
        if not is_new and (known := find_turn_result(record, message.key)) is not None:
            return self._update_pause(known) if known.step == len(record.steps) else known
        if is_new:
            check_open(thread, record.digest.usage, message.anyway)
        model = open_model(self.home, thread, record.header, egress_policy_of(thread, record.header))
        try:
            with Journal.open_unread(self.directory.journal) as journal:
                recorder = JournalRecorder(journal, self.directory.digest_file)
                if is_new and not _is_last(recorder, message):
                    await _record_message(recorder, message)
                end = await self._work(thread, message, recorder, model, cancelled)
                recorder.save_digest()
        finally:
            await model.close()
        ended: TurnEnd = "paused" if isinstance(end, BreakerTripped) else _TURN_ENDS.get(end.outcome, "error")
        reason = "answered" if ended == "answered" else end.reason
        usage, before = recorder.digest.usage, usage_before(recorder, message.key)
        result = make_turn_result(recorder.steps, usage, ended, reason)
        cut_off = usage.cut_off - before.cut_off
        warnings = _warnings(cut_off, model, answer_limits(thread, message, before))
        exit_code = end.exit_code if ended == "error" else 0
        return self._update_pause(replace(result, exit_code=exit_code, cut_off=cut_off, warnings=warnings))

    def _update_pause(self, end: ThreadTurnResult) -> ThreadTurnResult:
        """Store whether the thread is paused now: a new answer lifts an earlier pause."""
        paused = end.reason if end.ended == "paused" else None
        if self.directory.read().paused != paused:
            self.directory.update(paused=paused)
        return end

    async def _work(
        self, thread: Thread, message: ThreadMessage, recorder: JournalRecorder, model: Model, cancelled: CancelCheck
    ) -> RolloutEnd:
        store_at = self.directory.store_of(thread)
        with SnapshotStore(store_at, max_bytes=CHECKPOINT_BYTES) as store:
            spec = allow_hosts(SandboxSpec(), thread.hosts, self.directory.network)
            async with open_workspace(store, recorder, spec) as workspace:
                history = await has_history(workspace)
                config = self._rollout_config(thread, message, recorder, model, store, history)
                rollout = await Rollout.resume(config, workspace, recorder)
                return await run_turns(rollout, cancelled)

    def _rollout_config(
        self,
        thread: Thread,
        message: ThreadMessage,
        recorder: JournalRecorder,
        model: Model,
        store: SnapshotStore,
        history: bool,
    ) -> RolloutConfig:
        before = usage_before(recorder, message.key)
        limits = answer_limits(thread, message, before)
        cache = ThreadReplyCache(self.directory.reply, recorder.journal)
        return RolloutConfig(
            model=model,
            make_tools=lambda work: thread_tools(thread, work, self.home, self.outbox, history, limits.tool_seconds),
            name=thread.thread_id,
            wrap_conversation=lambda conversation: ReplyCachedConversation(conversation, cache),
            limits=limits,
            constraints=thread.constraints,
            changed_paths=store.diff,
            prune_checkpoints=lambda kept: drop_old_checkpoints(self.home, thread, store, kept),
            reply_ends_run=True,
            make_breaker=lambda: BehaviourBreaker(MonitorSet()),
            told_budget=ToldBudget(limits, before.turns, before.earlier_seconds),
        )


def _warnings(cut_off: int, model: Model, limits: RolloutLimits) -> tuple[str, ...]:
    turn_tokens = RolloutConfig(model, lambda _state: (), limits=limits).turn_tokens
    return cut_off_warnings(RolloutUsage(cut_off=cut_off), turn_tokens, limits.turn_tokens)


def answer_limits(thread: Thread, message: ThreadMessage, before: RolloutUsage) -> RolloutLimits:
    """The limits of the answer to a message, after what was used `before` it: turns and time for this answer, tokens
    and money for the whole thread. The message may also have limits of its own."""
    usual = RolloutLimits()
    own_tokens = before.tokens + message.budget_tokens if message.budget_tokens else None
    own_usd = before.cost_usd + message.budget_usd if message.budget_usd else None
    most_tokens = [most for most in (own_tokens, thread.budget_tokens) if most is not None]
    most_usd = [most for most in (own_usd, thread.budget_usd) if most is not None]
    seconds = message.max_seconds or thread.max_seconds or usual.wall_seconds or 0.0
    return RolloutLimits(
        turns=before.turns + (message.max_turns or thread.max_turns or usual.turns),
        turn_tokens=message.max_turn_tokens or thread.max_turn_tokens or usual.turn_tokens,
        wall_seconds=before.earlier_seconds + seconds,
        tokens=min(most_tokens, default=None),
        cost_usd=min(most_usd, default=None),
        tool_seconds=thread.max_tool_seconds or usual.tool_seconds,
    )


def _is_last(recorder: JournalRecorder, message: ThreadMessage) -> bool:
    last = recorder.digest.message
    return last is not None and last.key == message.key


async def _record_message(recorder: JournalRecorder, message: ThreadMessage) -> None:
    """Record the message with the current checkpoint and agent state: a fork can start here."""
    checkpoint, work = checkpoint_at(active_record(recorder))
    extra: dict[str, Any] = {"key": message.key, "origin": message.origin, "checkpoint": checkpoint, "work": work.data}
    await recorder.append(message_step(len(recorder.steps) + 1, "user", message.text, **extra))
