"""The job of kind `turn`: a message to a thread, and the agent's answer.

The payload has `thread` and `text`, and optionally `origin` (the sender), `budget_tokens`, `budget_usd`, `max_turns`,
`max_turn_tokens` and `max_seconds` (limits of the answer), `anyway` (go on with a paused thread) and `key` (the
message's key, else the job's own).
"""

from dataclasses import asdict

from gametape.desk.jobs import Desk, JobSteps, Json
from gametape.desk.threads.agent_setup import egress_policy_of
from gametape.desk.threads.session import ThreadMessage, ThreadSession
from gametape.desk.threads.thread import thread_directory
from gametape.desk.threads.thread_record import ThreadRecord


async def run_turn_job(desk: Desk, steps: JobSteps, payload: dict[str, Json]) -> dict[str, Json]:
    """Run a turn; a person is notified of a pause. The result has `thread, ended, answer, reason, turns, tokens,
    cost_usd, step`; `ended` is a `TurnEnd`."""
    directory = thread_directory(desk.home, payload["thread"])
    message = ThreadMessage(
        text=payload["text"],
        key=payload.get("key") or steps.key,
        origin=payload.get("origin") or "person",
        budget_tokens=payload.get("budget_tokens"),
        anyway=bool(payload.get("anyway")),
        budget_usd=payload.get("budget_usd"),
        max_turns=payload.get("max_turns"),
        max_turn_tokens=payload.get("max_turn_tokens"),
        max_seconds=payload.get("max_seconds"),
    )

    async def send() -> Json:
        return asdict(await ThreadSession(desk.home, directory, desk.outbox).send(message, steps.cancelled))

    result: dict[str, Json] = await steps.once("speak", send)
    if result["ended"] == "paused":
        thread = directory.read()

        async def notify() -> Json:
            title = f"{thread.title or thread.thread_id} is paused"
            local_only = egress_policy_of(thread, ThreadRecord.open(directory).header).local_only
            key = f"{steps.key}/paused"
            await desk.notifications.notify(key, thread.thread_id, title, result["reason"], local_only)

        await steps.once("tell", notify)
    return {"thread": directory.root.name, **result}
