"""One tick: guard, budget, and only then the agent. What it came to is entered once."""

import asyncio
import time
from dataclasses import replace
from datetime import datetime

from gametape.core.errors import GametapeError
from gametape.desk.errands import Desk, Json, Steps
from gametape.desk.heartbeats import book
from gametape.desk.heartbeats.asking import Answer, ask, stays_here
from gametape.desk.heartbeats.book import Ended, Standing
from gametape.desk.heartbeats.cadence import adapted
from gametape.desk.heartbeats.plan import Plan
from gametape.desk.heartbeats.sources import ASKED, run

_NOTHING = "nothing"
"""What an agent answers that has nothing to tell."""


async def work(desk: Desk, steps: Steps, order: dict[str, Json]) -> dict[str, Json]:
    """`order`: heartbeat, thread (whose line this is), reason. The result: outcome, detail, tokens, cost_usd."""
    name = order["heartbeat"]
    begun = await steps.now()
    plan = Plan.model_validate_json(await steps.once("plan", lambda: _plan(desk, name)))
    barred = await steps.once("bar", lambda: _bar(desk, name, plan, begun))
    if barred["outcome"]:
        came_to = {**barred, "tokens": 0, "cost_usd": 0.0}
    else:
        try:
            answer = await ask(desk, steps, order, plan, barred)
            spent = {"tokens": answer.tokens, "cost_usd": answer.cost_usd}
            came_to = {"outcome": _outcome(answer), "detail": answer.text.strip(), **spent}
        except GametapeError as error:
            came_to = {"outcome": "refused", "detail": str(error), "tokens": 0, "cost_usd": 0.0}
    if plan.notify and came_to["outcome"] in (ASKED, "refused"):
        await steps.once("tell-tick", lambda: _tell(desk, steps.key, order, plan, came_to["detail"]))
    await steps.once("enter", lambda: _enter(desk, steps.key, name, plan, came_to))
    return {told: came_to[told] for told in ("outcome", "detail", "tokens", "cost_usd")}


def midnight(plan: Plan, now: float) -> float:
    """When the day began whose budget is being spent."""
    return datetime.fromtimestamp(now, plan.zone).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()


def _outcome(answer: Answer) -> str:
    if answer.ended != "answered":
        return "refused"
    return "nothing" if answer.text.strip().lower().rstrip(".!") in ("", _NOTHING) else ASKED


async def _plan(desk: Desk, name: str) -> str:
    """Kept, so that a file that is edited meanwhile changes the next tick and not half of this one."""
    return (await asyncio.to_thread(book.plan_of, desk, name)).model_dump_json(by_alias=True)


async def _bar(desk: Desk, name: str, plan: Plan, now: float) -> dict[str, Json]:
    """What keeps the agent from being asked; `outcome` is empty if nothing does."""
    tokens, usd = await asyncio.to_thread(book.spent_since, desk, name, midnight(plan, now))
    left = None if plan.budget.tokens is None else plan.budget.tokens - tokens
    usd_left = None if plan.budget.usd is None else plan.budget.usd - usd
    last, last_usd = await asyncio.to_thread(book.last_spent, desk, name) if tokens or usd else (0, 0.0)
    if _short(left, last) or _short(usd_left, last_usd):
        detail = f"spent today: {tokens} tokens, {usd:.4f} USD; the last answer: {last} tokens, {last_usd:.4f} USD"
        return {"outcome": "budget", "detail": detail}
    if plan.guard:
        result = await run(plan, plan.guard)
        if result.exit_code != 0:
            told = (result.stderr or result.stdout).strip().splitlines()[-1:]
            return {"outcome": "guard", "detail": f"exit code {result.exit_code} {' '.join(told)}".rstrip()[:300]}
    return {"outcome": "", "tokens_left": left, "usd_left": usd_left}


def _short(left: float | None, last: float) -> bool:
    """Whether too little is left of a budget to ask once more. An answer is likely to take what the last one took; the
    first one of a day is let through, for it cannot know."""
    return left is not None and (left <= 0 or left < last)


async def _tell(desk: Desk, key: str, order: dict[str, Json], plan: Plan, text: str) -> None:
    """An answer stays on this machine if the heartbeat does, or the thread that gave it."""
    name = f"heartbeat {order['heartbeat']}"
    stays = plan.local_only or await stays_here(desk.home, order["thread"])
    await desk.notices.tell(f"{key}/tell", name, name, text, stays)


async def _enter(desk: Desk, key: str, name: str, plan: Plan, came_to: dict[str, Json]) -> None:
    """The scheduled instant is in the key; a tick of another heartbeat's life under the same name changes nothing."""

    def how(old: Standing) -> Standing:
        if old.pending != key:
            return old
        return replace(old, pending="", state=adapted(plan.rhythm, old.state, came_to["outcome"] == ASKED))

    scheduled = datetime.fromisoformat(key.rsplit("/", 1)[1]).timestamp()
    told = (came_to["outcome"], came_to["detail"], came_to["tokens"], came_to["cost_usd"])
    await asyncio.to_thread(book.enter, desk, Ended(key, name, scheduled, time.time(), *told), how)
