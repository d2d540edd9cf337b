"""What the agents of a desk did in some hours, what they cost, and what is worth a worry: from records, no model asked.

The same records and the same hours give the same digest.
"""

import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import sqlalchemy as sa

from gametape.agent.recorded_steps import is_answer, message_key
from gametape.core.errors import GametapeError
from gametape.core.plural import count_of
from gametape.core.step import Step
from gametape.desk.database import drafts, notices, ticks
from gametape.desk.goals.attempt_text import end_text
from gametape.desk.goals.goal import GoalDirectory, list_goal_directories
from gametape.desk.heartbeats import registry
from gametape.desk.jobs import Desk
from gametape.desk.threads.overview import list_threads
from gametape.desk.threads.thread import ThreadDirectory, thread_directory
from gametape.desk.threads.thread_record import ThreadRecord
from gametape.desk.vault.repository import list_commits
from gametape.desk.vault.vault import Vault
from gametape.watch.breaker import BREAKER_EVENT
from gametape.watch.costs import cost_report
from gametape.watch.log_reader import LoggedStep
from gametape.watch.monitor_set import MonitorSet, baseline_length
from gametape.watch.observed_step import observed_step, parse_number
from gametape.watch.report import WatchReport
from gametape.watch.text_features import one_line

HOURS = 24.0
_MOST_STEPS = 1_000
"""The latest steps of a thread that its monitors are shown."""
_LINE = 200
_SPENT = ("tokens", "cost_usd")


@dataclass
class Digest:
    """Lines for a person, and the sums. `local_only`: it tells of work that may not leave this machine."""

    since: float
    until: float
    did: list[str] = field(default_factory=list)
    worries: list[str] = field(default_factory=list)
    spent: list[tuple[str, int, float]] = field(default_factory=list)
    """Tokens and dollars of each thread and goal."""
    local_only: bool = False

    @property
    def tokens(self) -> int:
        return sum(tokens for _name, tokens, _usd in self.spent)

    @property
    def cost_usd(self) -> float:
        return sum(usd for _name, _tokens, usd in self.spent)

    @property
    def text(self) -> str:
        """The digest in three parts."""
        costs = [
            f"{name}: {count_of(tokens, 'token')}, {usd:.4f} USD"
            for name, tokens, usd in sorted(self.spent, key=lambda row: (-row[2], -row[1], row[0]))
            if tokens or usd
        ]
        total = f"{count_of(self.tokens, 'token')}, {self.cost_usd:.4f} USD"
        parts = [
            ("What your agents did", self.did or ["nothing"]),
            (f"What they cost: {total}", costs),
            ("What worries me", self.worries or ["nothing"]),
        ]
        return "\n".join("\n".join([title, *(f"- {line}" for line in lines)]) for title, lines in parts)


def make_digest(desk: Desk, since: float, until: float) -> Digest:
    """The digest of the time from `since` up to `until`."""
    digest = Digest(since, until)
    _add_threads(digest, desk)
    _add_goals(digest, desk)
    _add_heartbeats(digest, desk)
    _add_messages(digest, desk)
    _add_notes(digest, desk)
    return digest


def _add_threads(digest: Digest, desk: Desk) -> None:
    for summary in sorted(list_threads(desk.home), key=lambda summary: summary.thread.thread_id):
        thread, name = summary.thread, _named(summary.thread.thread_id, summary.thread.title)
        if thread.paused:
            digest.worries.append(f"{name} is paused: {_short(thread.paused)}")
            digest.local_only |= thread.local_only
        if summary.last < digest.since:
            continue
        try:
            record = ThreadRecord.open(thread_directory(desk.home, thread.thread_id))
            watched = record.latest(_MOST_STEPS)
            steps = [*_within(digest, record)]
        except GametapeError as error:
            digest.worries.append(f"{name} cannot be read: {_short(str(error))}")
            continue
        if not steps:
            continue
        digest.local_only |= thread.local_only
        messages, answers = sum(message_key(step) is not None for step in steps), sum(map(is_answer, steps))
        turns = sum(step.source == "agent" and not step.is_copied_context for step in steps)
        told = (count_of(messages, "message"), count_of(answers, "answer"), count_of(turns, "turn"))
        digest.did.append(f"{name}: {', '.join(told)}")
        costs = cost_report([record.header.model_copy(update={"steps": steps, "extra": None})])
        digest.spent.append((name, round(costs.on_unfinished.tokens), costs.on_unfinished.cost_usd))
        digest.worries += _trips(name, steps)
        digest.worries += _alarms(name, watched, steps[0].step_id, thread_directory(desk.home, thread.thread_id))


def _within(digest: Digest, record: ThreadRecord) -> Iterator[Step]:
    """The steps of these hours, the oldest first; a record is read from its end."""
    first = len(record.steps)
    while first and (_moment(record.brief(first - 1)) or digest.since) >= digest.since:
        first -= 1
    for index in range(first, len(record.steps)):
        step = record.brief(index)
        at = _moment(step)
        if at is not None and digest.since <= at < digest.until:
            yield step


def _moment(step: Step) -> float | None:
    return datetime.fromisoformat(step.timestamp).timestamp() if step.timestamp else None


def _trips(name: str, steps: list[Step]) -> Iterator[str]:
    """What breakers did."""
    events = [event for step in steps for event in step.gametape_extra.events or ()]
    counts = Counter(str(event.get("detail")) for event in events if event.get("kind") == BREAKER_EVENT)
    for detail, times in counts.items():
        yield f"{name}: the watch stepped in{_often(times)}: {_short(detail)}"
    if breaches := sum(event.get("kind") != BREAKER_EVENT for event in events):
        yield f"{name}: {count_of(breaches, 'event')} of forbidden or failed calls"


def _alarms(name: str, watched: list[Step], first: int, directory: ThreadDirectory) -> Iterator[str]:
    """What the monitors say of the latest steps, where an alarm began in these hours."""
    report = WatchReport(MonitorSet(baseline_length(len(watched))))
    for step in watched:
        report.observe(LoggedStep(directory.trajectory, step.step_id, observed_step(step)))
    for episode in report.episodes:
        if episode.until >= first:
            yield f"{name}: {episode.alarm.monitor} since step {episode.step}"


def _add_goals(digest: Digest, desk: Desk) -> None:
    for directory in list_goal_directories(desk.home):
        try:
            goal, result = directory.read_goal(), directory.read_result()
        except GametapeError as error:
            digest.worries.append(f"{directory.root.name} cannot be read: {_short(str(error))}")
            continue
        name = _named(goal.goal_id, goal.success)
        if result is None:
            if goal.created < digest.until:
                digest.did.append(f"{name}: goes on")
                digest.local_only |= goal.local_only
        elif digest.since <= _written(directory) < digest.until:
            digest.local_only |= goal.local_only
            attempts = [attempt for attempt in _listed(result.get("attempts")) if isinstance(attempt, dict)]
            why = end_text({"reason": result.get("reason"), "attempts": attempts})
            outcome = "reached" if result.get("reached") else f"not reached: {_short(why)}"
            digest.did.append(f"{name}: {outcome}, {count_of(len(attempts), 'attempt')}")
            if not result.get("reached"):
                digest.worries.append(f"{name}: {outcome}")
            tokens, usd = (sum(parse_number(attempt.get(key)) or 0.0 for attempt in attempts) for key in _SPENT)
            digest.spent.append((name, round(tokens), usd))


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _written(directory: GoalDirectory) -> float:
    return Path(directory.result).stat().st_mtime


def _add_heartbeats(digest: Digest, desk: Desk) -> None:
    """Ticks by their outcome; what they cost is counted with the threads that they ask."""
    query = sa.select(ticks.c.heartbeat, ticks.c.outcome, ticks.c.detail)
    query = query.where(ticks.c.at >= digest.since, ticks.c.at < digest.until).order_by(ticks.c.at)
    with desk.database.connect() as connection:
        rows = connection.execute(query).all()
    for name in sorted({row[0] for row in rows}):
        outcomes = Counter(outcome for heartbeat, outcome, _detail in rows if heartbeat == name)
        told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
        digest.did.append(f"heartbeat {name}: {count_of(outcomes.total(), 'tick')} ({told})")
        for outcome in ("refused", "failed", "budget"):
            last = [detail for heartbeat, said, detail in rows if (heartbeat, said) == (name, outcome)]
            if last:
                digest.worries.append(f"heartbeat {name}: {outcome}{_often(len(last))}, last: {_short(last[-1])}")
    for name in registry.heartbeat_names(desk):
        try:
            registry.read_config(desk, name)
        except GametapeError as error:
            digest.worries.append(f"heartbeat {name} cannot tick: {_short(str(error))}")


def _add_messages(digest: Digest, desk: Desk) -> None:
    """Drafts that were written and decided, and what did not arrive."""
    with desk.database.connect() as connection:
        rows = connection.execute(sa.select(drafts.c.state, drafts.c.drafted, drafts.c.decided)).all()
        problems = connection.execute(
            sa.select(sa.func.count(), sa.func.max(notices.c.problem)).where(
                notices.c.delivered.is_(None), notices.c.problem != "", notices.c.at < digest.until
            )
        ).one()
    within = [state for state, drafted, _decided in rows if digest.since <= drafted < digest.until]
    sent = sum(state == "sent" and digest.since <= (at or 0.0) < digest.until for state, _drafted, at in rows)
    waiting = Counter(state for state, _drafted, _decided in rows)
    if within or sent:
        digest.did.append(f"outbox: {count_of(len(within), 'draft')} written, {sent} sent")
    if waiting["draft"]:
        digest.worries.append(f"outbox: {count_of(waiting['draft'], 'draft waits', 'drafts wait')} for your decision")
    if unsure := waiting["sending"]:
        digest.worries.append(f"outbox: of {count_of(unsure, 'message')} it is not known whether it left")
    if waiting["approved"]:
        digest.worries.append(f"outbox: {count_of(waiting['approved'], 'approved message')} could not be sent")
    if problems[0]:
        digest.worries.append(f"{count_of(problems[0], 'notification')} not delivered: {_short(problems[1])}")


def _add_notes(digest: Digest, desk: Desk) -> None:
    root = desk.home / "vault"
    if not (root / ".git").exists():
        return
    try:
        commits = list_commits(Vault.open(root).repository, f"--since=@{int(digest.since)}", "HEAD")
    except GametapeError as error:
        digest.worries.append(f"the vault cannot be read: {_short(str(error))}")
        return
    written = [commit for commit in commits if commit.turn is not None and commit.time < digest.until]
    if written:
        notes = {path for commit in written for path in commit.paths}
        digest.did.append(f"vault: {count_of(len(written), 'write')} to {count_of(len(notes), 'note')}")


def _named(identity: str, title: str) -> str:
    return f"{identity} ({_short(title, 60)})" if title else identity


def _often(times: int) -> str:
    return "" if times == 1 else f" {times} times"


def _short(text: str, length: int = _LINE) -> str:
    line = one_line(text)
    return line if len(line) <= length else line[: length - 3] + "..."


def last_hours(desk: Desk, hours: float) -> Digest:
    """The digest of the last so many hours."""
    now = time.time()
    return make_digest(desk, now - hours * 3600, now)
