"""The errand of the kind `turn`: something is said to a thread, and answered.

The order: `thread` and `text`, and as one likes `origin` (who says it), `budget_tokens` and `budget_usd` (what the
answer may take) and `anyway` (go on with a paused thread). The words' key is `key`, or the errand's own.
"""

from dataclasses import asdict

from gametape.desk.errands import Desk, Json, Steps
from gametape.desk.threads.speaking import Said, Speaking
from gametape.desk.threads.surroundings import perimeter_of
from gametape.desk.threads.thread import place_of


async def work(desk: Desk, steps: Steps, order: dict[str, Json]) -> dict[str, Json]:
    """`thread, ended, answer, reason, turns, tokens, cost_usd, step`; `ended` is `answered`, `limit`, `error`, `paused`
    or `cancelled`. A pause is told to a person."""
    place = place_of(desk.home, order["thread"])
    said = Said(
        text=order["text"],
        key=order.get("key") or steps.key,
        origin=order.get("origin") or "person",
        budget_tokens=order.get("budget_tokens"),
        anyway=bool(order.get("anyway")),
        budget_usd=order.get("budget_usd"),
    )

    async def speak() -> Json:
        return asdict(await Speaking(desk.home, place, desk.outbox).speak(said, steps.cancelled))

    end: dict[str, Json] = await steps.once("speak", speak)
    if end["ended"] == "paused":
        thread = place.read()

        async def tell() -> Json:
            title = f"{thread.title or thread.thread_id} is paused"
            stays = perimeter_of(thread, place.recorded()).local_only
            await desk.notices.tell(f"{steps.key}/paused", thread.thread_id, title, end["reason"], stays)

        await steps.once("tell", tell)
    return {"thread": place.root.name, **end}
