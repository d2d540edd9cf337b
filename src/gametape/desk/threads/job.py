"""The errand of the kind `turn`: something is said to a thread, and answered.

The order: `thread` and `text`, and as one likes `origin` (who says it), `budget_tokens` and `budget_usd` (what the
answer may take) and `anyway` (go on with a paused thread). The words' key is `key`, or the errand's own.
"""

from dataclasses import asdict

from gametape.desk.jobs import Desk, JobSteps, Json
from gametape.desk.threads.agent_setup import egress_policy_of
from gametape.desk.threads.session import ThreadMessage, ThreadSession
from gametape.desk.threads.thread import thread_directory


async def run_turn_job(desk: Desk, steps: JobSteps, payload: dict[str, Json]) -> dict[str, Json]:
    """`thread, ended, answer, reason, turns, tokens, cost_usd, step`; `ended` is `answered`, `limit`, `error`, `paused`
    or `cancelled`. A pause is told to a person."""
    directory = thread_directory(desk.home, payload["thread"])
    message = ThreadMessage(
        text=payload["text"],
        key=payload.get("key") or steps.key,
        origin=payload.get("origin") or "person",
        budget_tokens=payload.get("budget_tokens"),
        anyway=bool(payload.get("anyway")),
        budget_usd=payload.get("budget_usd"),
    )

    async def speak() -> Json:
        return asdict(await ThreadSession(desk.home, directory, desk.outbox).send(message, steps.cancelled))

    result: dict[str, Json] = await steps.once("speak", speak)
    if result["ended"] == "paused":
        thread = directory.read()

        async def notify() -> Json:
            title = f"{thread.title or thread.thread_id} is paused"
            local_only = egress_policy_of(thread, directory.load_trajectory()).local_only
            key = f"{steps.key}/paused"
            await desk.notifications.notify(key, thread.thread_id, title, result["reason"], local_only)

        await steps.once("tell", notify)
    return {"thread": directory.root.name, **result}
