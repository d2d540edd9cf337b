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
from gametape.desk.threads.agent_setup import check_open, perimeter_of
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


async def check_targets(home: Path, plan: HeartbeatConfig) -> None:
    """Refuse now what every tick would be refused for: a workspace, a thread or a model that is not there."""
    if plan.workspace is not None and not plan.workspace.is_dir():
        raise BadInput(f"{plan.workspace}: no such workspace directory")
    if plan.thread:
        thread_directory(home, plan.thread)
    else:
        await resolve_model_name(home, plan.model, EgressPolicy(local_only=plan.local_only))


async def ask_agent(
    desk: Desk, steps: JobSteps, payload: dict[str, Json], plan: HeartbeatConfig, remaining: dict[str, Json]
) -> HeartbeatAnswer:
    """Say the plan's text in the thread, with the tick as its key, and give what was answered and what that took.
    `left` is what it may take."""
    thread, name = payload["thread"], payload["heartbeat"]
    tokens, usd = remaining["tokens_left"], remaining.get("usd_left")
    said = ThreadMessage(
        f"{plan.text}\n\n({payload['reason']})", steps.key, f"heartbeat/{name}", tokens, budget_usd=usd
    )
    before = await steps.once("thread", lambda: _stand(desk.home, thread, name, plan, said))
    words: dict[str, Json] = {
        "thread": thread,
        "text": said.text,
        "key": said.key,
        "origin": said.origin,
        "budget_tokens": said.budget_tokens,
        "budget_usd": said.budget_usd,
    }
    end = await turn(desk, steps, words)
    spent = end["tokens"] - before["tokens"], end["cost_usd"] - before["cost_usd"]
    return HeartbeatAnswer(end["ended"], end["answer"] or end["reason"], *spent)


async def is_local_only(home: Path, thread: str) -> bool:
    """Whether what is said in a thread may not leave this machine. One that was never begun has said nothing."""
    place = ThreadDirectory(threads_root(home) / thread)
    return place.thread_file.exists() and perimeter_of(place.read(), place.load_trajectory()).local_only


async def _stand(home: Path, thread: str, name: str, plan: HeartbeatConfig, said: ThreadMessage) -> dict[str, Json]:
    """See that the thread is there; what it has spent up to now. A heartbeat's own thread is begun when it is first
    needed, and is shown the workspace as it is at every tick."""
    if plan.thread:
        place = thread_directory(home, thread)
    else:
        place = await _own(home, thread, name, plan)
        if plan.workspace is not None:
            await _say_over(place, plan.workspace, said)
    spent = usage_from_steps(place.load_trajectory().steps)
    return {"tokens": spent.tokens, "cost_usd": spent.cost_usd}


async def _own(home: Path, thread: str, name: str, plan: HeartbeatConfig) -> ThreadDirectory:
    """One whose beginning was cut off has no file that says what it is, and is begun again. A plan that has become
    local-only makes its thread so."""
    place = ThreadDirectory(threads_root(home) / thread)
    if place.thread_file.exists():
        if plan.local_only and not place.read().local_only:
            place.update(local_only=True)
        return place
    remove_tree(place.root)
    fresh = Thread(
        thread_id=thread,
        title=f"heartbeat {name}",
        model=plan.model,
        created=time.time(),
        vault=str(home / "vault"),
        workspace=str(plan.workspace.resolve()) if plan.workspace else None,
        local_only=plan.local_only,
        store=thread,
    )
    return await create_thread(home, fresh)


async def _say_over(place: ThreadDirectory, workspace: Path, said: ThreadMessage) -> None:
    """Put the words on record, once, with the files that the workspace has now in the place of those of before. The
    turn finds them there and goes on."""
    thread, steps = place.read(), place.load_trajectory().steps
    if any(message_key(step) == said.key for step in steps):
        return
    check_open(thread, steps, said.anyway)
    with SnapshotStore(place.store_of(thread), max_bytes=CHECKPOINT_BYTES) as store:
        checkpoint = await asyncio.to_thread(store.import_tree, workspace)
        with Journal.open(place.journal) as journal:
            recorder = JournalRecorder(journal)
            ours = {"key": said.key, "origin": said.origin, "checkpoint": checkpoint, "work": AgentState().data}
            await recorder.append(message_step(len(recorder.steps) + 1, "user", said.text, **ours))


_NOTHING = "nothing"
"""What an agent answers that has nothing to tell."""


async def run_tick_job(desk: Desk, steps: JobSteps, payload: dict[str, Json]) -> dict[str, Json]:
    """`order`: heartbeat, thread (whose line this is), reason. The result: outcome, detail, tokens, cost_usd."""
    name = payload["heartbeat"]
    begun = await steps.now()
    plan = HeartbeatConfig.model_validate_json(await steps.once("plan", lambda: _plan(desk, name)))
    barred = await steps.once("bar", lambda: _bar(desk, name, plan, begun))
    if barred["outcome"]:
        came_to = {**barred, "tokens": 0, "cost_usd": 0.0}
    else:
        try:
            answer = await ask_agent(desk, steps, payload, plan, barred)
            spent = {"tokens": answer.tokens, "cost_usd": answer.cost_usd}
            came_to = {"outcome": _outcome(answer), "detail": answer.text.strip(), **spent}
        except GametapeError as error:
            came_to = {"outcome": "refused", "detail": str(error), "tokens": 0, "cost_usd": 0.0}
    if plan.notify and came_to["outcome"] in (ASKED, "refused"):
        await steps.once("tell-tick", lambda: _tell(desk, steps.key, payload, plan, came_to["detail"]))
    await steps.once("enter", lambda: _enter(desk, steps.key, name, plan, came_to))
    return {told: came_to[told] for told in ("outcome", "detail", "tokens", "cost_usd")}


def midnight(plan: HeartbeatConfig, now: float) -> float:
    """When the day began whose budget is being spent."""
    return datetime.fromtimestamp(now, plan.zone).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def _outcome(answer: HeartbeatAnswer) -> str:
    if answer.ended != "answered":
        return "refused"
    return "nothing" if answer.text.strip().lower().rstrip(".!") in ("", _NOTHING) else ASKED


async def _plan(desk: Desk, name: str) -> str:
    """Kept, so that a file that is edited meanwhile changes the next tick and not half of this one."""
    return (await asyncio.to_thread(registry.read_config, desk, name)).model_dump_json(by_alias=True)


async def _bar(desk: Desk, name: str, plan: HeartbeatConfig, now: float) -> dict[str, Json]:
    """What keeps the agent from being asked; `outcome` is empty if nothing does."""
    tokens, usd = await asyncio.to_thread(registry.spent_since, desk, name, midnight(plan, now))
    left = None if plan.budget.tokens is None else plan.budget.tokens - tokens
    usd_left = None if plan.budget.usd is None else plan.budget.usd - usd
    last, last_usd = await asyncio.to_thread(registry.last_spent, desk, name) if tokens or usd else (0, 0.0)
    if _short(left, last) or _short(usd_left, last_usd):
        detail = f"spent today: {tokens} tokens, {usd:.4f} USD; the last answer: {last} tokens, {last_usd:.4f} USD"
        return {"outcome": "budget", "detail": detail}
    if plan.guard:
        result = await run_in_sandbox(plan, plan.guard)
        if result.exit_code != 0:
            told = (result.stderr or result.stdout).strip().splitlines()[-1:]
            return {"outcome": "guard", "detail": f"exit code {result.exit_code} {' '.join(told)}".rstrip()[:300]}
    return {"outcome": "", "tokens_left": left, "usd_left": usd_left}


def _short(left: float | None, last: float) -> bool:
    """Whether too little is left of a budget to ask once more. An answer is likely to take what the last one took; the
    first one of a day is let through, for it cannot know."""
    return left is not None and (left <= 0 or left < last)


async def _tell(desk: Desk, key: str, order: dict[str, Json], plan: HeartbeatConfig, text: str) -> None:
    """An answer stays on this machine if the heartbeat does, or the thread that gave it."""
    name = f"heartbeat {order['heartbeat']}"
    stays = plan.local_only or await is_local_only(desk.home, order["thread"])
    await desk.notifications.notify(f"{key}/tell", name, name, text, stays)


async def _enter(desk: Desk, key: str, name: str, plan: HeartbeatConfig, came_to: dict[str, Json]) -> None:
    """The scheduled instant is in the key; a tick of another heartbeat's life under the same name changes nothing."""

    def how(old: HeartbeatState) -> HeartbeatState:
        if old.pending != key:
            return old
        return replace(old, pending="", state=adapt_interval(plan.cadence_rule, old.state, came_to["outcome"] == ASKED))

    scheduled = datetime.fromisoformat(key.rsplit("/", 1)[1]).timestamp()
    told = (came_to["outcome"], came_to["detail"], came_to["tokens"], came_to["cost_usd"])
    await asyncio.to_thread(registry.record_tick, desk, TickRecord(key, name, scheduled, time.time(), *told), how)
