"""How a thread's agent is set up: its tools, limits, model and egress policy, and which checkpoints are kept."""

import asyncio
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from gametape.agent.agent_state import AgentState
from gametape.agent.limits import RolloutUsage
from gametape.agent.recorded_steps import message_key, usage_from_steps
from gametape.agent.recorder import StepRecorder
from gametape.agent.tools import standard_tools
from gametape.agent.tools.argument_schema import parameters_schema
from gametape.agent.tools.tool import ValidatedTool
from gametape.core.errors import BadInput
from gametape.core.messages import ToolResult
from gametape.core.protocols import Tool, Workspace
from gametape.core.trajectory import Trajectory
from gametape.desk.agent_turns import TurnKeys
from gametape.desk.outbox import Outbox
from gametape.desk.threads.lifecycle import CHECKPOINT_BYTES
from gametape.desk.threads.thread import Thread, ThreadRefused, thread_directory, thread_ids
from gametape.desk.threads.thread_record import ThreadRecord
from gametape.desk.vault.notes import VaultNotes, vault_tools
from gametape.desk.vault.vault import Vault
from gametape.engines.conversation import Model
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.model_names import resolve_model
from gametape.sandbox.snapshots.store import SnapshotStore
from gametape.verify.static_analysis.analyzer import StaticAnalyzer


class DraftTool(ValidatedTool):
    """Puts a message into the outbox, where a person approves or rejects it."""

    name = "draft"
    description = "Write a message to somebody. It is not sent: a person reads it first, and releases or rejects it."
    parameters = parameters_schema(
        ("to", "subject", "text"),
        to={"type": "string", "minLength": 1, "maxLength": 300},
        subject={"type": "string", "minLength": 1, "maxLength": 300},
        text={"type": "string", "minLength": 1, "maxLength": 20_000},
    )

    def __init__(self, outbox: Outbox, keys: TurnKeys) -> None:
        self._outbox, self._keys = outbox, keys

    async def act(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:  # noqa: ARG002
        to, subject, text = (arguments[name] for name in ("to", "subject", "text"))
        name = await asyncio.to_thread(self._outbox.draft, self._keys.next(), self._keys.attempt, to, subject, text)
        return ToolResult(content=f"drafted as {name}; it waits for a person")


def check_open(thread: Thread, usage: RolloutUsage, anyway: bool = False) -> None:
    """Raise `ThreadRefused` if a thread that has used this much takes no messages now; with `anyway`, a paused thread
    does."""
    name = thread.thread_id
    if thread.archived:
        raise ThreadRefused(f"{name} is archived; fork it to go on")
    if thread.paused and not anyway:
        raise ThreadRefused(f"{name} is paused: {thread.paused}; look at it, then say it with --anyway")
    if thread.budget_tokens is not None and usage.tokens >= thread.budget_tokens:
        raise ThreadRefused(
            f"{name} has spent its budget: {usage.tokens} of {thread.budget_tokens} tokens; fork it to go on"
        )
    if thread.budget_usd is not None and usage.cost_usd >= thread.budget_usd:
        raise ThreadRefused(
            f"{name} has spent its budget: ${usage.cost_usd:.4f} of ${thread.budget_usd:g}; fork it to go on"
        )


def usage_before(recorder: StepRecorder, key: str) -> RolloutUsage:
    """What the thread had used before the message with this key."""
    message = recorder.digest.message
    if message is not None and message.key == key:
        return replace(message.before)
    steps = recorder.steps
    return usage_from_steps(steps[: next(number for number, step in enumerate(steps) if message_key(step) == key)])


def egress_policy_of(thread: Thread, record: Trajectory) -> EgressPolicy:
    """What may leave this machine. Both the thread's file and its record can forbid it."""
    extra = (record.agent.extra or {}).get("gametape") or {}
    return EgressPolicy(local_only=thread.local_only or bool(extra.get("local_only")))


def open_model(home: Path, thread: Thread, record: Trajectory, egress: EgressPolicy) -> Model:
    """The model that the thread was created with; another one is refused."""
    model = resolve_model(thread.model, home, egress)
    if egress.local_only and not model.local:
        raise BadInput(f"{thread.model}: not on this machine, and {thread.thread_id} is local-only")
    if model.name != record.agent.model_name:
        raise BadInput(f"{thread.thread_id} was begun with {record.agent.model_name}, not with {model.name}")
    return model


def thread_tools(
    thread: Thread, work: AgentState, home: Path, outbox: Outbox, history: bool, max_seconds: float
) -> list[Tool]:
    """The standard tools, the vault's note tools, and the draft tool."""
    notes = VaultNotes(Vault.open(Path(thread.vault)), thread.thread_id, lambda: work.turn)
    drafts = TurnKeys(thread.thread_id, lambda: work.turn, "draft")
    standard = standard_tools(
        work, analyzer=StaticAnalyzer(home), python=sys.executable, history=history, max_seconds=max_seconds
    )
    return [*standard, *vault_tools(notes), DraftTool(outbox, drafts)]


def drop_old_checkpoints(home: Path, thread: Thread, store: SnapshotStore, kept: Iterable[str]) -> None:
    """Delete old checkpoints if they take too much space, but keep the first and the last of every thread that shares
    the store."""
    if store.used_bytes() <= CHECKPOINT_BYTES // 2:
        return
    keep = set(kept)
    for name in thread_ids(home):
        directory = thread_directory(home, name)
        if directory.read().store == thread.store:
            record = ThreadRecord.open(directory)
            for order in (range(len(record.steps)), reversed(range(len(record.steps)))):
                keep.add(next(filter(None, (record.brief(index).gametape_extra.checkpoint for index in order))))
    store.collect(keep, max_bytes=CHECKPOINT_BYTES // 2)
