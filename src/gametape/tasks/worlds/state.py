"""A world in play: what its things hold, which jobs are left, what is still to be told. Never changed in place.

Every call uses up the job at hand, whatever it does. What it does depends on the things alone, never on the job: a
call at the wrong thing goes through, and is found out at the end.
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
    """A refused call: which job it cost, what was wrong, and how many calls later that is told."""

    job: int
    error: str
    due_call: int


@dataclass(frozen=True)
class WorldState:
    contents: Contents
    queue: tuple[int, ...]
    """The jobs that are left, the one at hand first."""
    calls: int = 0
    pending_errors: tuple[PendingError, ...] = ()
    retried_jobs: frozenset[int] = frozenset()
    """Jobs that have been given a second time."""
    marks: tuple[TurnMark, ...] = ()

    @property
    def done(self) -> bool:
        return not self.queue


class WorldReply(NamedTuple):
    """What a call is answered with."""

    text: str
    failed: bool
    done: bool


def initial_state(plan: WorldPlan) -> WorldState:
    return WorldState(plan.start, tuple(range(len(plan.jobs))))


def current_job(plan: WorldPlan, state: WorldState) -> WorldJob:
    return plan.jobs[state.queue[0]]


def is_solved(plan: WorldPlan, state: WorldState) -> bool:
    """Whether all is as it should be: each thing holds what was asked for, and nothing else. What a note is worth, a
    later episode shows."""
    return state.done and all(state.contents[item] == plan.goal[item] for item in plan.kinds)


def apply_action(
    plan: WorldPlan, state: WorldState, action: WorldAction, turn: int, delay: int, retry: bool
) -> tuple[WorldState, WorldReply]:
    """What a call makes of the world, and what it is told."""
    if state.done:
        return state, WorldReply("error : no job is left", failed=True, done=True)
    number, *left = state.queue
    job = plan.jobs[number]
    holds, error = _tried(plan, state.contents, action)
    right = not error and holds == _wanted(state.contents, job)
    calls = state.calls + 1
    losses = [*state.pending_errors, *([PendingError(number, error, calls + delay)] if error else [])]
    due = [loss for loss in losses if loss.due_call <= calls or not left]
    back = [loss.job for loss in due if retry and loss.job not in state.retried_jobs]
    now = WorldState(
        holds,
        (*back, *left),
        calls,
        tuple(loss for loss in losses if loss not in due),
        state.retried_jobs.union(back),
        (*state.marks, TurnMark(turn, right, bool(job.marking), job.rule_key)),
    )
    if not now.done:
        return now, WorldReply(f"{_said(due)} , next {current_job(plan, now).text}", bool(due), done=False)
    return now, WorldReply(f"{_said(due)} , done", bool(due), done=True)


def _said(due: list[PendingError]) -> str:
    return " , ".join(loss.error for loss in due) or "ok"


def _wanted(holds: Contents, job: WorldJob) -> Contents | None:
    """What the job asked for, as things stand; None where it cannot be had any more."""
    if job.verb == "keep":
        return {**holds, NOTE_ITEM: (job.item, job.value)}
    if job.verb == "put":
        return with_value(holds, job.item, job.value)
    return without_value(holds, job.item, job.value) if job.value in holds[job.item] else None


def _tried(plan: WorldPlan, holds: Contents, move: WorldAction) -> tuple[Contents, str]:
    """The things after a call and an empty line, or the things as they were and what was wrong."""
    item, value, mode = (*move.values, "", "", "")[:3]
    if error := _refusal(plan, holds, move.tool, item, value, mode):
        return holds, error
    if move.tool == KEEP_TOOL_NAME:
        return {**holds, NOTE_ITEM: (item, value)}, ""
    change = without_value if move.tool == plan.family.drop_tool else with_value
    return change(holds, item, value), ""


def _refusal(plan: WorldPlan, holds: Contents, tool: str, item: str, value: str, mode: str) -> str:
    """What is wrong with a call as things are, or nothing."""
    if item not in plan.kinds:
        return "error : no such name"
    wrong = ""
    if not value or len(value) > _LONGEST_VALUE:
        wrong = "no value"
    elif mode and mode not in MODES:
        wrong = "no such mode"
    elif tool != KEEP_TOOL_NAME:
        wrong = _broken_rule(plan, item, mode or tool)
        if not wrong and tool == plan.family.drop_tool and value not in holds[item]:
            wrong = f"no {value} in it"
    return f"error at {item} : {wrong}" if wrong else ""


def _broken_rule(plan: WorldPlan, item: str, used: str) -> str:
    """What the thing takes, if this tool or mode is not it."""
    kind = plan.kinds[item]
    if marking := plan.markings.get(item):
        demand = plan.demands[marking]
        return f"{rule_text(marking, kind, demand)} , not {used}" if used != demand else ""
    if used in DEMANDS:
        return f"a plain {kind} takes {plan.family.put_tool} , not {used}"
    return ""
