"""The state of a world during an episode: contents, jobs left, errors not yet reported. States are immutable.

Every call uses up the current job. What a call does depends on the contents alone, not on the job: a call at the wrong
item succeeds, and costs the reward at the end.
"""

from dataclasses import dataclass
from typing import NamedTuple

from gametape.core.environment import TurnMark
from gametape.tasks.worlds.plan import (
    KEEP_TOOL_NAME,
    NOTE_ITEM,
    Contents,
    WorldAction,
    WorldJob,
    WorldPlan,
    with_value,
    without_value,
)
from gametape.tasks.worlds.rules import DEMANDS, MODES, rule_text

_LONGEST_VALUE = 64


@dataclass(frozen=True)
class PendingError:
    """A refused call: the job that it cost, the error, and the number of the call at which it is reported."""

    job: int
    error: str
    due_call: int


@dataclass(frozen=True)
class WorldState:
    contents: Contents
    queue: tuple[int, ...]
    """The jobs that are left, the current one first."""
    calls: int = 0
    pending_errors: tuple[PendingError, ...] = ()
    retried_jobs: frozenset[int] = frozenset()
    """Jobs that have been given a second time."""
    marks: tuple[TurnMark, ...] = ()

    @property
    def done(self) -> bool:
        return not self.queue


class WorldReply(NamedTuple):
    """The answer to a call."""

    text: str
    failed: bool
    done: bool


def initial_state(plan: WorldPlan) -> WorldState:
    return WorldState(plan.start, tuple(range(len(plan.jobs))))


def current_job(plan: WorldPlan, state: WorldState) -> WorldJob:
    return plan.jobs[state.queue[0]]


def is_solved(plan: WorldPlan, state: WorldState) -> bool:
    """Whether each item contains what the jobs asked for, and nothing else. The note is not checked: the reader's
    episode shows its worth."""
    return state.done and all(state.contents[item] == plan.goal[item] for item in plan.kinds)


def apply_action(
    plan: WorldPlan, state: WorldState, action: WorldAction, turn: int, delay: int, retry: bool
) -> tuple[WorldState, WorldReply]:
    """The state after a call, and the answer to it."""
    if state.done:
        return state, WorldReply("error : no job is left", failed=True, done=True)
    number, *rest = state.queue
    job = plan.jobs[number]
    contents, error = _attempted(plan, state.contents, action)
    correct = not error and contents == _expected(state.contents, job)
    calls = state.calls + 1
    errors = [*state.pending_errors, *([PendingError(number, error, calls + delay)] if error else [])]
    due = [pending for pending in errors if pending.due_call <= calls or not rest]
    retried = [pending.job for pending in due if retry and pending.job not in state.retried_jobs]
    after = WorldState(
        contents,
        (*retried, *rest),
        calls,
        tuple(pending for pending in errors if pending not in due),
        state.retried_jobs.union(retried),
        (*state.marks, TurnMark(turn, correct, bool(job.marking), job.rule_key)),
    )
    if not after.done:
        return after, WorldReply(f"{_report(due)} , next {current_job(plan, after).text}", bool(due), done=False)
    return after, WorldReply(f"{_report(due)} , done", bool(due), done=True)


def _report(due: list[PendingError]) -> str:
    return " , ".join(error.error for error in due) or "ok"


def _expected(contents: Contents, job: WorldJob) -> Contents | None:
    """The contents after the job is done correctly; None if it cannot be done any more."""
    if job.verb == "keep":
        return {**contents, NOTE_ITEM: (job.item, job.value)}
    if job.verb == "put":
        return with_value(contents, job.item, job.value)
    return without_value(contents, job.item, job.value) if job.value in contents[job.item] else None


def _attempted(plan: WorldPlan, contents: Contents, action: WorldAction) -> tuple[Contents, str]:
    """The contents after a call and an empty text, or the unchanged contents and the error."""
    item, value, mode = (*action.values, "", "", "")[:3]
    if error := _refusal(plan, contents, action.tool, item, value, mode):
        return contents, error
    if action.tool == KEEP_TOOL_NAME:
        return {**contents, NOTE_ITEM: (item, value)}, ""
    change = without_value if action.tool == plan.family.drop_tool else with_value
    return change(contents, item, value), ""


def _refusal(plan: WorldPlan, contents: Contents, tool: str, item: str, value: str, mode: str) -> str:
    """The error of a call, or an empty text."""
    if item not in plan.kinds:
        return "error : no such name"
    wrong = ""
    if not value or len(value) > _LONGEST_VALUE:
        wrong = "no value"
    elif mode and mode not in MODES:
        wrong = "no such mode"
    elif tool != KEEP_TOOL_NAME:
        wrong = _broken_rule(plan, item, mode or tool)
        if not wrong and tool == plan.family.drop_tool and value not in contents[item]:
            wrong = f"no {value} in it"
    return f"error at {item} : {wrong}" if wrong else ""


def _broken_rule(plan: WorldPlan, item: str, used: str) -> str:
    """What the item demands, if this tool or mode does not satisfy it; else an empty text."""
    kind = plan.kinds[item]
    if marking := plan.markings.get(item):
        demand = plan.demands[marking]
        return f"{rule_text(marking, kind, demand)} , not {used}" if used != demand else ""
    if used in DEMANDS:
        return f"a plain {kind} takes {plan.family.put_tool} , not {used}"
    return ""
