"""How a task is put to an agent: as work in a repository, or as one question with one answer."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gametape.agent.constraints import Constraints
from gametape.agent.tools.answer import Answer
from gametape.agent.work import Work
from gametape.agent.workshop import first_words, tools_for
from gametape.core.errors import BadInput
from gametape.core.protocols import Tool
from gametape.verify.subject import Subject

_ANSWERER = "You write Python functions. Answer with one ```python block that holds the whole file."
_TURNS_TO_ANSWER = 2
"""The second is for whoever forgot the block."""


@dataclass(frozen=True)
class Presentation:
    """What is said first, how many turns there are, and the tools over what the agent has in hand."""

    system: str
    opening: str
    turns: int
    tools: Callable[[Work], Sequence[Tool]]
    constraints: Constraints = field(default_factory=Constraints)


def as_work(
    subject: Subject, home: Path, turns: int = 50, constraints: Constraints | None = None, tool_seconds: float = 120.0
) -> Presentation:
    """The task as `gametape solve` puts it, with the standard tools and without a memory."""
    forbidden = constraints or Constraints()
    system, opening = first_words(subject, forbidden.describe())
    return Presentation(
        system, opening, turns, lambda work: tools_for(subject, work, home, tool_seconds), constraints=forbidden
    )


def as_question(subject: Subject) -> Presentation:
    """The instruction alone, to be answered with the task's one source file. A model too small to work with tools can
    do that. Raises `BadInput` for tasks that are about more than a file."""
    path, *more = subject.task.source_paths
    if more or path not in subject.start:
        raise BadInput(f"{subject.task.name}: only a task about one file can be put as a question")
    return Presentation(_ANSWERER, subject.task.instruction.strip(), _TURNS_TO_ANSWER, lambda _work: [Answer(path)])
