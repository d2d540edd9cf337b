"""The job of a tick: check budget and guard, ask the agent in a thread, notify a person, and record the outcome."""

import asyncio
import time
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from gametape.agent.agent_state import AgentState
from gametape.agent.recorder import JournalRecorder, message_step
from gametape.core.errors import BadInput, GametapeError
from gametape.desk.digest import HOURS, make_digest
from gametape.desk.heartbeats import registry
from gametape.desk.heartbeats.cadence import adapt_interval
from gametape.desk.heartbeats.config import HeartbeatConfig
from gametape.desk.heartbeats.event_sources import ASKED, run_in_sandbox
from gametape.desk.heartbeats.registry import HeartbeatState, TickRecord
from gametape.desk.jobs import Desk, JobSteps, Json
from gametape.desk.threads.agent_setup import check_open, egress_policy_of
from gametape.desk.threads.job import run_turn_job as turn
from gametape.desk.threads.lifecycle import CHECKPOINT_BYTES, create_thread, resolve_model_name
from gametape.desk.threads.session import ThreadMessage
from gametape.desk.threads.thread import Thread, ThreadDirectory, thread_directory, threads_root
from gametape.desk.threads.thread_record import ThreadRecord, thread_digest
from gametape.engines.egress_policy import EgressPolicy
from gametape.record.journal import Journal
from gametape.sandbox.snapshots.cleanup import remove_tree
from gametape.sandbox.snapshots.store import SnapshotStore


@dataclass(frozen=True)
class HeartbeatAnswer:
    ended: str
    """`answered`, or another `TurnEnd` of the thread."""
    text: str
    tokens: int
    cost_usd: float


async def check_targets(home: Path, config: HeartbeatConfig) -> None:
    """Raise `BadInput` for what every tick would be refused for: a missing workspace, thread or model."""
    if config.workspace is not None and not config.workspace.is_dir():
        raise BadInput(f"{config.workspace}: no such workspace directory")
    if config.thread:
        thread_directory(home, config.thread)
    elif config.digest:
        return
    elif not config.model:
        raise BadInput("the heartbeat names no model and no thread: give it one of them")
    else:
        await resolve_model_name(home, config.model, EgressPolicy(local_only=config.local_only))


async def ask_agent(
    desk: Desk, steps: JobSteps, payload: dict[str, Json], config: HeartbeatConfig, remaining: dict[str, Json]
) -> HeartbeatAnswer:
    """Send the configured text to the thread, with the tick as its key. `remaining` is the budget that is left."""
    thread, name = payload["thread"], payload["heartbeat"]
    tokens, usd = remaining["tokens_left"], remaining.get("usd_left")
    message = ThreadMessage(
        f"{config.text}\n\n({payload['reason']})", steps.key, f"heartbeat/{name}", tokens, budget_usd=usd
    )
    before = await steps.once("thread", lambda: _prepare_thread(desk.home, thread, name, config, message))
    turn_payload: dict[str, Json] = {
        "thread": thread,
        "text": message.text,
        "key": message.key,
        "origin": message.origin,
        "budget_tokens": message.budget_tokens,
        "budget_usd": message.budget_usd,
    }
    end = await turn(desk, steps, turn_payload)
    usage = end["tokens"] - before["tokens"], end["cost_usd"] - before["cost_usd"]
    return HeartbeatAnswer(end["ended"], end["answer"] or end["reason"], *usage)


async def is_local_only(home: Path, thread: str) -> bool:
    """Whether the content of a thread may not leave this machine. A thread that does not exist has no content."""
    directory = ThreadDirectory(threads_root(home) / thread)
    return (
        directory.thread_file.exists()
        and egress_policy_of(directory.read(), ThreadRecord.open(directory).header).local_only
    )


async def _prepare_thread(
    home: Path, thread: str, name: str, config: HeartbeatConfig, message: ThreadMessage
) -> dict[str, Json]:
    """Make sure that the thread exists, and return its usage so far. A heartbeat's own thread is created when it is
    first needed, and gets a fresh copy of the workspace at every tick."""
    if config.thread:
        directory = thread_directory(home, thread)
    else:
        directory = await _own_thread(home, thread, name, config)
        if config.workspace is not None:
            await _record_with_workspace(directory, config.workspace, message)
    usage = thread_digest(directory).usage
    return {"tokens": usage.tokens, "cost_usd": usage.cost_usd}


async def _own_thread(home: Path, thread: str, name: str, config: HeartbeatConfig) -> ThreadDirectory:
    """The heartbeat's own thread. One whose creation was cut off has no thread.json and is created again. If the
    heartbeat has become local-only, so does its thread."""
    directory = ThreadDirectory(threads_root(home) / thread)
    if directory.thread_file.exists():
        if config.local_only and not directory.read().local_only:
            directory.update(local_only=True)
        return directory
    remove_tree(directory.root)
    new_thread = Thread(
        thread_id=thread,
        title=f"heartbeat {name}",
        model=config.model,
        created=time.time(),
        vault=str(home / "vault"),
        workspace=str(config.workspace.resolve()) if config.workspace else None,
        local_only=config.local_only,
        store=thread,
    )
    return await create_thread(home, new_thread)


async def _record_with_workspace(directory: ThreadDirectory, workspace: Path, message: ThreadMessage) -> None:
    """Record the message, once, with the current files of the workspace in place of the thread's old ones. The turn
    that follows finds it recorded and continues."""
    thread, record = directory.read(), ThreadRecord.open(directory)
    if record.knows_message(message.key):
        return
    check_open(thread, record.digest.usage, message.anyway)
    with SnapshotStore(directory.store_of(thread), max_bytes=CHECKPOINT_BYTES) as store:
        checkpoint = await asyncio.to_thread(store.import_tree, workspace)
        with Journal.open_unread(directory.journal) as journal:
            recorder = JournalRecorder(journal, directory.digest_file)
            extra = {"key": message.key, "origin": message.origin, "checkpoint": checkpoint, "work": AgentState().data}
            await recorder.append(message_step(len(recorder.steps) + 1, "user", message.text, **extra))


DIGEST = "digest"
"""The outcome of a tick that told of the desk's agents."""
_LONGEST_DIGEST = 7 * 86_400.0
_NOTHING = "nothing"
"""What an agent answers when it has nothing to say."""


async def run_tick_job(desk: Desk, steps: JobSteps, payload: dict[str, Json]) -> dict[str, Json]:
    """Run a tick. The payload has `heartbeat`, `thread` (the partition key) and `reason`; the result has `outcome`,
    `detail`, `tokens` and `cost_usd`."""
    name = payload["heartbeat"]
    begun = await steps.now()
    config = HeartbeatConfig.model_validate_json(await steps.once("plan", lambda: _read_config(desk, name)))
    blocked = await steps.once("bar", lambda: _check_blocked(desk, name, config, begun))
    if blocked["outcome"]:
        result = {**blocked, "tokens": 0, "cost_usd": 0.0}
    elif config.digest:
        told = await steps.once("digest", lambda: asyncio.to_thread(_digest, desk, name, begun))
        result = {"outcome": DIGEST, "detail": told["text"], "tokens": 0, "cost_usd": 0.0}
        if config.notify:
            local_only = config.local_only or told["local_only"]
            await steps.once("tell-digest", lambda: _tell_digest(desk, steps.key, name, told["text"], local_only))
    else:
        try:
            answer = await ask_agent(desk, steps, payload, config, blocked)
            usage = {"tokens": answer.tokens, "cost_usd": answer.cost_usd}
            result = {"outcome": _outcome(answer), "detail": answer.text.strip(), **usage}
        except GametapeError as error:
            result = {"outcome": "refused", "detail": str(error), "tokens": 0, "cost_usd": 0.0}
    if config.notify and result["outcome"] in (ASKED, "refused"):
        await steps.once("tell-tick", lambda: _notify(desk, steps.key, payload, config, result["detail"]))
    await steps.once("enter", lambda: _record(desk, steps.key, name, config, result))
    return {key: result[key] for key in ("outcome", "detail", "tokens", "cost_usd")}


def _digest(desk: Desk, name: str, until: float) -> dict[str, Json]:
    """The digest since the last one of this heartbeat, or of a day."""
    last, longest = registry.last_with_outcome(desk, name, DIGEST), until - _LONGEST_DIGEST
    since = until - HOURS * 3600 if last is None else max(min(last, until), longest)
    digest = make_digest(desk, since, until)
    return {"text": digest.text, "local_only": digest.local_only}


async def _tell_digest(desk: Desk, key: str, name: str, text: str, local_only: bool) -> None:
    await desk.notifications.notify(f"{key}/tell", f"heartbeat {name}", "digest", text, local_only)


def midnight(config: HeartbeatConfig, now: float) -> float:
    """When the current day began in the heartbeat's time zone."""
    return datetime.fromtimestamp(now, config.zone).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def _outcome(answer: HeartbeatAnswer) -> str:
    if answer.ended != "answered":
        return "refused"
    return "nothing" if answer.text.strip().lower().rstrip(".!") in ("", _NOTHING) else ASKED


async def _read_config(desk: Desk, name: str) -> str:
    """The configuration as JSON. It is stored, so that an edit during a tick takes effect with the next one."""
    return (await asyncio.to_thread(registry.read_config, desk, name)).model_dump_json(by_alias=True)


async def _check_blocked(desk: Desk, name: str, config: HeartbeatConfig, now: float) -> dict[str, Json]:
    """The outcome `budget` or `guard` if the agent may not be asked; else an empty outcome and the budget left."""
    tokens, usd = await asyncio.to_thread(registry.spent_since, desk, name, midnight(config, now))
    tokens_left = None if config.budget.tokens is None else config.budget.tokens - tokens
    usd_left = None if config.budget.usd is None else config.budget.usd - usd
    last, last_usd = await asyncio.to_thread(registry.last_spent, desk, name) if tokens or usd else (0, 0.0)
    if _is_short(tokens_left, last) or _is_short(usd_left, last_usd):
        detail = f"spent today: {tokens} tokens, {usd:.4f} USD; the last answer: {last} tokens, {last_usd:.4f} USD"
        return {"outcome": "budget", "detail": detail}
    if config.guard:
        result = await run_in_sandbox(config, config.guard)
        if result.exit_code != 0:
            last_line = (result.stderr or result.stdout).strip().splitlines()[-1:]
            detail = f"exit code {result.exit_code} {' '.join(last_line)}".rstrip()[:300]
            return {"outcome": "guard", "detail": detail}
    return {"outcome": "", "tokens_left": tokens_left, "usd_left": usd_left}


def _is_short(left: float | None, last: float) -> bool:
    """Whether too little of a budget is left to ask again: an answer is expected to cost what the last one did. The
    first answer of a day has no estimate and is allowed."""
    return left is not None and (left <= 0 or left < last)


async def _notify(desk: Desk, key: str, payload: dict[str, Json], config: HeartbeatConfig, text: str) -> None:
    """Notify a person. The answer stays on this machine if the heartbeat or its thread is local-only."""
    name = f"heartbeat {payload['heartbeat']}"
    local_only = config.local_only or await is_local_only(desk.home, payload["thread"])
    await desk.notifications.notify(f"{key}/tell", name, name, text, local_only)


async def _record(desk: Desk, key: str, name: str, config: HeartbeatConfig, result: dict[str, Json]) -> None:
    """Record a tick's outcome. The scheduled instant is in the key. A tick of a removed heartbeat with the same name
    does not change the state of the present one."""

    def update(old: HeartbeatState) -> HeartbeatState:
        if old.pending != key:
            return old
        state = adapt_interval(config.cadence_rule, old.state, result["outcome"] == ASKED)
        return replace(old, pending="", state=state)

    scheduled = datetime.fromisoformat(key.rsplit("/", 1)[1]).timestamp()
    outcome = (result["outcome"], result["detail"], result["tokens"], result["cost_usd"])
    record = TickRecord(key, name, scheduled, time.time(), *outcome)
    await asyncio.to_thread(registry.record_tick, desk, record, update)
