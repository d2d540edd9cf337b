"""How a heartbeat asks: a turn in its thread, which is its own unless it names another."""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path

from gametape.agent.recording import OnDisk, said_step, spent_in
from gametape.agent.work import Work
from gametape.core.errors import BadInput
from gametape.desk.errands import Desk, Json, Steps
from gametape.desk.heartbeats.plan import Plan
from gametape.desk.threads.answers import key_of
from gametape.desk.threads.beginning import CHECKPOINT_BYTES, begin, model_name
from gametape.desk.threads.bounds import check_open
from gametape.desk.threads.speaking import Said
from gametape.desk.threads.surroundings import perimeter_of
from gametape.desk.threads.thread import Thread, ThreadPlace, directory, place_of
from gametape.desk.threads.work import work as turn
from gametape.engines.perimeter import Perimeter
from gametape.record.journal import Journal
from gametape.sandbox.snapshots.store import SnapshotStore
from gametape.sandbox.snapshots.sweep import remove_tree


@dataclass(frozen=True)
class Answer:
    ended: str
    """As the thread says it: `answered`, or why not."""
    text: str
    tokens: int
    cost_usd: float


async def check(home: Path, plan: Plan) -> None:
    """Refuse now what every tick would be refused for: a workspace, a thread or a model that is not there."""
    if plan.workspace is not None and not plan.workspace.is_dir():
        raise BadInput(f"{plan.workspace}: no such workspace directory")
    if plan.thread:
        place_of(home, plan.thread)
    else:
        await model_name(home, plan.model, Perimeter(local_only=plan.local_only))


async def ask(desk: Desk, steps: Steps, order: dict[str, Json], plan: Plan, left: dict[str, Json]) -> Answer:
    """Say the plan's text in the thread, with the tick as its key, and give what was answered and what that took.
    `left` is what it may take."""
    thread, name = order["thread"], order["heartbeat"]
    tokens, usd = left["tokens_left"], left.get("usd_left")
    said = Said(f"{plan.text}\n\n({order['reason']})", steps.key, f"heartbeat/{name}", tokens, budget_usd=usd)
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
    return Answer(end["ended"], end["answer"] or end["reason"], *spent)


async def stays_here(home: Path, thread: str) -> bool:
    """Whether what is said in a thread may not leave this machine. One that was never begun has said nothing."""
    place = ThreadPlace(directory(home) / thread)
    return place.file.exists() and perimeter_of(place.read(), place.recorded()).local_only


async def _stand(home: Path, thread: str, name: str, plan: Plan, said: Said) -> dict[str, Json]:
    """See that the thread is there; what it has spent up to now. A heartbeat's own thread is begun when it is first
    needed, and is shown the workspace as it is at every tick."""
    if plan.thread:
        place = place_of(home, thread)
    else:
        place = await _own(home, thread, name, plan)
        if plan.workspace is not None:
            await _say_over(place, plan.workspace, said)
    spent = spent_in(place.recorded().steps)
    return {"tokens": spent.tokens, "cost_usd": spent.cost_usd}


async def _own(home: Path, thread: str, name: str, plan: Plan) -> ThreadPlace:
    """One whose beginning was cut off has no file that says what it is, and is begun again. A plan that has become
    local-only makes its thread so."""
    place = ThreadPlace(directory(home) / thread)
    if place.file.exists():
        if plan.local_only and not place.read().local_only:
            place.change(local_only=True)
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
    return await begin(home, fresh)


async def _say_over(place: ThreadPlace, workspace: Path, said: Said) -> None:
    """Put the words on record, once, with the files that the workspace has now in the place of those of before. The
    turn finds them there and goes on."""
    thread, steps = place.read(), place.recorded().steps
    if any(key_of(step) == said.key for step in steps):
        return
    check_open(thread, steps, said.anyway)
    with SnapshotStore(place.store_of(thread), max_bytes=CHECKPOINT_BYTES) as store:
        checkpoint = await asyncio.to_thread(store.import_tree, workspace)
        with Journal.open(place.journal) as journal:
            recorder = OnDisk(journal)
            ours = {"key": said.key, "origin": said.origin, "checkpoint": checkpoint, "work": Work().data}
            await recorder.append(said_step(len(recorder.steps) + 1, "user", said.text, **ours))
