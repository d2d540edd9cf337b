"""The accounting of a soak: every tick, message, note, notification and send is there, and none twice."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from gametape.agent.recorded_steps import message_key, recorded_answers, usage_from_steps
from gametape.core.step import Step
from gametape.desk.database import check_database, drafts, notices, ticks
from gametape.desk.database_backup import back_up, backups_of, database_file
from gametape.desk.desk import open_desk
from gametape.desk.goals.goal import goal_directory
from gametape.desk.heartbeats import registry
from gametape.desk.jobs import Desk
from gametape.desk.threads.thread import thread_directory, thread_ids
from gametape.desk.workflow_engine import open_job_client
from soak_plan import ROUND, Plan

_PERIODS = {"daily": 86_400.0, "poor": 86_400.0, "digest": 86_400.0, "halfday": 43_200.0, "guarded": 28_800.0}
_TOLD = ("asked", "refused", "digest")
_MOST_BACKUPS = 7


def account(top: Path, plan: Plan, known: dict[str, Any]) -> dict[str, Any]:
    """Counts, and in `broken` each promise that was not kept, in a sentence."""
    broken: list[str] = []
    with open_desk(top / "home") as desk:
        check_database(desk.database_url)
        back_up(desk.database_url)
        steps = {name: thread_directory(desk.home, name).load_trajectory().steps for name in thread_ids(desk.home)}
        counts: dict[str, Any] = {
            **_ticks(desk, plan, known, steps, broken),
            **_messages(desk, plan, known, steps, broken),
            **_notes(desk, steps, broken),
            **_sends(desk, top, steps, broken),
            **_notifications(desk, top, broken),
            **_goals(desk, plan, known, broken),
        }
        with open_job_client(desk) as client:
            if left := client.unfinished():
                broken.append(f"unfinished jobs: {left}")
        backups = len(backups_of(database_file(desk.database_url)))
        if not 1 <= backups <= _MOST_BACKUPS:
            broken.append(f"{backups} backups")
    counts["tracebacks"] = _tracebacks(top)
    if counts["tracebacks"]:
        broken.append(f"{counts['tracebacks']} tracebacks")
    said = _read(top / "notes.jsonl")
    counts["full_disks_met"] = len([line for line in said if line["what"] == "full"])
    return {"counts": counts, "broken": broken}


def _ticks(
    desk: Desk, plan: Plan, known: dict[str, Any], steps: dict[str, list[Step]], broken: list[str]
) -> dict[str, Any]:
    """No tick twice or too early, none missing but where the clock was set or the process was gone, and each answer in
    the thread that was asked, under the tick's key."""
    with desk.database.connect() as connection:
        rows = connection.execute(sa.select(ticks).order_by(ticks.c.at)).mappings().all()
    outcomes = Counter(row["outcome"] for row in rows)
    disturbed = len(plan.clock) + len(plan.full)
    for name in known["heartbeats"]:
        own = [row for row in rows if row["heartbeat"] == name]
        state = registry.load_state(desk, name)
        if state.pending:
            broken.append(f"{name}: the tick {state.pending} has not ended")
        keys = Counter(message_key(step) for step in steps.get(state.thread, []) if message_key(step))
        if any(count > 1 for count in keys.values()):
            broken.append(f"{name}: asked twice for one tick")
        asked = {row["key"] for row in own if row["outcome"] in ("asked", "nothing")}
        if asked - set(keys):
            broken.append(f"{name}: {len(asked - set(keys))} ticks are not in its thread")
        if set(keys) - {row["key"] for row in own}:
            broken.append(f"{name}: {len(set(keys) - {row['key'] for row in own})} messages have no tick")
        if state.thread in steps:
            used, told = usage_from_steps(steps[state.thread]).tokens, sum(row["tokens"] for row in own)
            if used != told:
                broken.append(f"{name}: {used} tokens in its thread, {told} in its ticks")
        if (period := _PERIODS.get(name.partition("-")[0])) is not None:
            broken += _off_cadence(name, period, len(own), plan, disturbed)
    if outcomes["failed"]:
        broken.append(f"{outcomes['failed']} ticks failed")
    for earlier, later in pairwise(sorted((row["heartbeat"], row["scheduled"]) for row in rows)):
        if earlier == later:
            broken.append(f"{later[0]}: ticked twice at one instant")
    return {"ticks": len(rows), "ticks_by_outcome": dict(outcomes), "tokens": sum(row["tokens"] for row in rows)}


def _off_cadence(name: str, period: float, count: int, plan: Plan, disturbed: int) -> Iterator[str]:
    """Setting the clock while the process is gone moves a tick; nothing else does."""
    expected = int((plan.size.rounds - 1) * ROUND // period)
    if not expected - disturbed <= count <= expected + disturbed:
        yield f"{name}: {count} ticks where {expected} were due"


def _messages(
    desk: Desk, plan: Plan, known: dict[str, Any], steps: dict[str, list[Step]], broken: list[str]
) -> dict[str, Any]:
    """Each message is in its thread once, in the order in which they were sent, and was answered unless the model was
    down."""
    wanted = {(thread, number) for said in plan.says.values() for thread, number in said}
    answered = failed = 0
    for thread, name in enumerate(known["threads"]):
        keys = [key for step in steps[name] if (key := message_key(step))]
        if keys != [f"say-{thread}-{number}" for number in range(plan.size.says) if (thread, number) in wanted]:
            broken.append(f"thread {thread}: its messages are {keys}")
    with open_job_client(desk) as client:
        for thread, number in sorted(wanted):
            result = client.result(f"say-{thread}-{number}")
            answered += result["ended"] == "answered"
            failed += result["ended"] == "error"
            if result["ended"] not in ("answered", "error"):
                broken.append(f"say-{thread}-{number}: {result['ended']}: {result['reason']}")
    if failed and not plan.outages:
        broken.append(f"{failed} messages failed with no outage")
    return {"messages": len(wanted), "answered": answered, "refused_by_an_outage": failed}


def _done(steps: list[Step], tool: str) -> int:
    """The calls of a tool that the record says were done."""
    answers = [answer for step in steps if step.source == "agent" for answer in recorded_answers(step)[0]]
    return sum(answer.call.name == tool and not answer.failed for answer in answers)


def _notes(desk: Desk, steps: dict[str, list[Step]], broken: list[str]) -> dict[str, Any]:
    words = ("log", "--format=%(trailers:key=Gametape-Thread,valueonly,separator=)")
    log = subprocess.run(["git", "-C", desk.home / "vault", *words], check=True, capture_output=True, text=True).stdout
    written = Counter(log.split())
    for name, own in steps.items():
        if (done := _done(own, "remember")) != written[name]:
            broken.append(f"{name}: {done} notes in its record, {written[name]} in the vault")
    return {"notes": written.total()}


def _sends(desk: Desk, top: Path, steps: dict[str, list[Step]], broken: list[str]) -> dict[str, Any]:
    """Each draft of a record is in the outbox once, and was sent once, or once more for each time that a person said
    so of one that was cut off."""
    with desk.database.connect() as connection:
        rows = connection.execute(sa.select(drafts)).mappings().all()
    for name, own in steps.items():
        stored = sum(row["origin"] == name for row in rows)
        if (done := _done(own, "draft")) != stored:
            broken.append(f"{name}: {done} drafts in its record, {stored} in the outbox")
    received = Counter(line["key"] for line in _read(top / "outbox.jsonl"))
    again = Counter(line["key"] for line in _read(top / "notes.jsonl") if line["what"] == "again")
    for row in rows:
        key, state = row["key"], row["state"]
        if state == "sent" and not 1 <= received[key] <= 1 + again[key]:
            broken.append(f"draft {key}: sent {received[key]} times")
        if state == "draft" and received[key]:
            broken.append(f"draft {key}: sent without a word")
    if set(received) - {row["key"] for row in rows}:
        broken.append("something was sent that is no draft")
    return {"drafts": len(rows), "sent": sum(row["state"] == "sent" for row in rows), "sent_again": again.total()}


def _notifications(desk: Desk, top: Path, broken: list[str]) -> dict[str, Any]:
    with desk.database.connect() as connection:
        rows = connection.execute(sa.select(notices)).mappings().all()
        told = connection.execute(sa.select(ticks.c.key).where(ticks.c.outcome.in_(_TOLD))).scalars().all()
    received = {line["key"] for line in _read(top / "notify.jsonl")}
    if missing := {f"{key}/tell" for key in told} - {row["key"] for row in rows}:
        broken.append(f"{len(missing)} ticks told nobody")
    if missing := {row["key"] for row in rows} - received:
        broken.append(f"{len(missing)} notifications did not arrive")
    return {"notifications": len(rows)}


def _goals(desk: Desk, plan: Plan, known: dict[str, Any], broken: list[str]) -> dict[str, Any]:
    results = [goal_directory(desk.home, known["goals"][goal]).read_result() for goal in sorted(plan.goals.values())]
    if None in results:
        broken.append(f"{results.count(None)} goals have not ended")
    reached = sum(bool(result and result["reached"]) for result in results)
    if reached < len(results) and not plan.outages:
        broken.append(f"{len(results) - reached} goals were not reached")
    return {"goals": len(results), "goals_reached": reached}


def _tracebacks(top: Path) -> int:
    logs = [top / "lives.log", *(top / "home" / "desk").glob("desk.log*")]
    return sum(log.read_text(errors="replace").count("Traceback") for log in logs if log.exists())


def _read(path: Path) -> list[dict[str, Any]]:
    """JSON lines; the last one may be torn, where its writer was killed."""
    found = []
    for line in path.read_text(errors="replace").splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found
