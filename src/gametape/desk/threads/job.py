"""The errand of the kind `turn`: something is said to a thread, and answered.

The order: `thread` and `text`, and as one likes `origin` (who says it), `budget_tokens` and `budget_usd` (what the
answer may take) and `anyway` (go on with a paused thread). The words' key is `key`, or the errand's own.
"""

from dataclasses import asdict

from gametape.desk.jobs import Desk, JobSteps, Json
from gametape.desk.threads.agent_setup import perimeter_of
from gametape.desk.threads.session import ThreadMessage, ThreadSession
from gametape.desk.threads.thread import thread_directory


async def run_turn_job(desk: Desk, steps: JobSteps, payload: dict[str, Json]) -> dict[str, Json]:
    """`thread, ended, answer, reason, turns, tokens, cost_usd, step`; `ended` is `answered`, `limit`, `error`, `paused`
    or `cancelled`. A pause is told to a person."""
    place = thread_directory(desk.home, payload["thread"])
    said = ThreadMessage(
        text=payload["text"],
        key=payload.get("key") or steps.key,
        origin=payload.get("origin") or "person",
        budget_tokens=payload.get("budget_tokens"),
        anyway=bool(payload.get("anyway")),
        budget_usd=payload.get("budget_usd"),
    )

    async def speak() -> Json:
        return asdict(await ThreadSession(desk.home, place, desk.outbox).send(said, steps.cancelled))

    end: dict[str, Json] = await steps.once("speak", speak)
    if end["ended"] == "paused":
        thread = place.read()

        async def tell() -> Json:
            title = f"{thread.title or thread.thread_id} is paused"
            stays = perimeter_of(thread, place.load_trajectory()).local_only
            await desk.notifications.notify(f"{steps.key}/paused", thread.thread_id, title, end["reason"], stays)

        await steps.once("tell", tell)
    return {"thread": place.root.name, **end}
