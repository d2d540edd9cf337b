"""What a hint about an assignment must not hold: the arguments of its right calls, or what only its solution has."""

from functools import lru_cache

from gametape.agent.sandboxed import SandboxAssignment
from gametape.coach.hints import NO_REFERENCE, Reference, reference_of
from gametape.core.assignment import Assignment
from gametape.tasks.worlds.experts import perfect, script
from gametape.tasks.worlds.world import World
from gametape.verify.tree import Tree


def reference_for(assignment: Assignment) -> Reference:
    """What the agent is shown of a task, its files and what it is told, gives nothing away."""
    if isinstance(assignment, World):
        return Reference(calls=tuple(frozenset(act.move.values) for act in script(assignment, perfect)))
    if not isinstance(assignment, SandboxAssignment) or assignment.subject.reference is None:
        return NO_REFERENCE
    subject = assignment.subject
    solution = assignment.subject.reference.under(subject.task.source_paths)
    return _of_task(solution, subject.start, assignment.system, assignment.opening)


@lru_cache(maxsize=64)
def _of_task(solution: Tree, start: Tree, system: str, opening: str) -> Reference:
    """Files that are as they were at the start have nothing to hide, and in a mined package nearly all of them are."""
    written = [path for path in solution if path not in start or solution.text(path) != start.text(path)]
    return reference_of(map(solution.text, written), [*map(start.text, start), system, opening])
