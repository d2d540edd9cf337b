"""How a heartbeat asks: a turn in its thread, which is its own unless it names another."""

import asyncio
import time
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from gametape.agent.agent_state import AgentState
from gametape.agent.recorder import JournalRecorder, message_step, usage_from_steps
from gametape.core.errors import BadInput, GametapeError
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
from gametape.desk.threads.turn_result import message_key
from gametape.engines.egress_policy import EgressPolicy
from gametape.record.journal import Journal
from gametape.sandbox.snapshots.cleanup import remove_tree
from gametape.sandbox.snapshots.store import SnapshotStore


@dataclass(frozen=True)
class HeartbeatAnswer:
    ended: str
    """As the thread says it: `answered`, or why not."""
    text: str
    tokens: int
    cost_usd: float


async def check_targets(home: Path, config: HeartbeatConfig) -> None:
    """Refuse now what every tick would be refused for: a workspace, a thread or a model that is not there."""
    if config.workspace is not None and not config.workspace.is_dir():
        raise BadInput(f"{config.workspace}: no such workspace directory")
    if config.thread:
        thread_directory(home, config.thread)
    else:
        await resolve_model_name(home, config.model, EgressPolicy(local_only=config.local_only))


async def ask_agent(
    desk: Desk, steps: JobSteps, payload: dict[str, Json], config: HeartbeatConfig, remaining: dict[str, Json]
) -> HeartbeatAnswer:
    """Say the plan's text in the thread, with the tick as its key, and give what was answered and what that took.
    `left` is what it may take."""
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
    """Whether what is said in a thread may not leave this machine. One that was never begun has said nothing."""
    directory = ThreadDirectory(threads_root(home) / thread)
    return directory.thread_file.exists() and egress_policy_of(directory.read(), directory.load_trajectory()).local_only


async def _prepare_thread(
    home: Path, thread: str, name: str, config: HeartbeatConfig, message: ThreadMessage
) -> dict[str, Json]:
    """See that the thread is there; what it has spent up to now. A heartbeat's own thread is begun when it is first
    needed, and is shown the workspace as it is at every tick."""
    if config.thread:
        directory = thread_directory(home, thread)
    else:
        directory = await _own_thread(home, thread, name, config)
        if config.workspace is not None:
            await _record_with_workspace(directory, config.workspace, message)
    usage = usage_from_steps(directory.load_trajectory().steps)
    return {"tokens": usage.tokens, "cost_usd": usage.cost_usd}


async def _own_thread(home: Path, thread: str, name: str, config: HeartbeatConfig) -> ThreadDirectory:
    """One whose beginning was cut off has no file that says what it is, and is begun again. A plan that has become
    local-only makes its thread so."""
    directory = ThreadDirectory(threads_root(home) / thread)
    if directory.thread_file.exists():
        if config.local_only and not directory.read().local_only:
            directory.update(local_only=True)
        return directory
    remove_tree(directory.root)
    fresh = Thread(
        thread_id=thread,
        title=f"heartbeat {name}",
        model=config.model,
        created=time.time(),
        vault=str(home / "vault"),
        workspace=str(config.workspace.resolve()) if config.workspace else None,
        local_only=config.local_only,
        store=thread,
    )
    return await create_thread(home, fresh)


async def _record_with_workspace(directory: ThreadDirectory, workspace: Path, message: ThreadMessage) -> None:
    """Put the words on record, once, with the files that the workspace has now in the place of those of before. The
    turn finds them there and goes on."""
    thread, steps = directory.read(), directory.load_trajectory().steps
    if any(message_key(step) == message.key for step in steps):
        return
    check_open(thread, steps, message.anyway)
    with SnapshotStore(directory.store_of(thread), max_bytes=CHECKPOINT_BYTES) as store:
        checkpoint = await asyncio.to_thread(store.import_tree, workspace)
        with Journal.open(directory.journal) as journal:
            recorder = JournalRecorder(journal)
            extra = {"key": message.key, "origin": message.origin, "checkpoint": checkpoint, "work": AgentState().data}
            await recorder.append(message_step(len(recorder.steps) + 1, "user", message.text, **extra))


_NOTHING = "nothing"
"""What an agent answers that has nothing to tell."""


async def run_tick_job(desk: Desk, steps: JobSteps, payload: dict[str, Json]) -> dict[str, Json]:
    """`order`: heartbeat, thread (whose line this is), reason. The result: outcome, detail, tokens, cost_usd."""
    name = payload["heartbeat"]
    begun = await steps.now()
    config = HeartbeatConfig.model_validate_json(await steps.once("plan", lambda: _read_config(desk, name)))
    blocked = await steps.once("bar", lambda: _check_blocked(desk, name, config, begun))
    if blocked["outcome"]:
        result = {**blocked, "tokens": 0, "cost_usd": 0.0}
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


def midnight(config: HeartbeatConfig, now: float) -> float:
    """When the day began whose budget is being spent."""
    return datetime.fromtimestamp(now, config.zone).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def _outcome(answer: HeartbeatAnswer) -> str:
    if answer.ended != "answered":
        return "refused"
    return "nothing" if answer.text.strip().lower().rstrip(".!") in ("", _NOTHING) else ASKED


async def _read_config(desk: Desk, name: str) -> str:
    """Kept, so that a file that is edited meanwhile changes the next tick and not half of this one."""
    return (await asyncio.to_thread(registry.read_config, desk, name)).model_dump_json(by_alias=True)


async def _check_blocked(desk: Desk, name: str, config: HeartbeatConfig, now: float) -> dict[str, Json]:
    """What keeps the agent from being asked; `outcome` is empty if nothing does."""
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
    """Whether too little is left of a budget to ask once more. An answer is likely to take what the last one took; the
    first one of a day is let through, for it cannot know."""
    return left is not None and (left <= 0 or left < last)


async def _notify(desk: Desk, key: str, payload: dict[str, Json], config: HeartbeatConfig, text: str) -> None:
    """An answer stays on this machine if the heartbeat does, or the thread that gave it."""
    name = f"heartbeat {payload['heartbeat']}"
    local_only = config.local_only or await is_local_only(desk.home, payload["thread"])
    await desk.notifications.notify(f"{key}/tell", name, name, text, local_only)


async def _record(desk: Desk, key: str, name: str, config: HeartbeatConfig, result: dict[str, Json]) -> None:
    """The scheduled instant is in the key; a tick of another heartbeat's life under the same name changes nothing."""

    def update(old: HeartbeatState) -> HeartbeatState:
        if old.pending != key:
            return old
        state = adapt_interval(config.cadence_rule, old.state, result["outcome"] == ASKED)
        return replace(old, pending="", state=state)

    scheduled = datetime.fromisoformat(key.rsplit("/", 1)[1]).timestamp()
    outcome = (result["outcome"], result["detail"], result["tokens"], result["cost_usd"])
    record = TickRecord(key, name, scheduled, time.time(), *outcome)
    await asyncio.to_thread(registry.record_tick, desk, record, update)
