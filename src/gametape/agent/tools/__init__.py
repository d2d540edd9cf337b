"""The tools of an agent, each in a file of its own, and the list of them for a task."""

from gametape.agent.tools.check import Check
from gametape.agent.tools.edit import Edit
from gametape.agent.tools.finish import Finish
from gametape.agent.tools.history import History
from gametape.agent.tools.jump import Jump
from gametape.agent.tools.memory import Recall, Remember
from gametape.agent.tools.read import Read
from gametape.agent.tools.search import Search
from gametape.agent.tools.semantic import SemanticSearch, Vectors
from gametape.agent.tools.shell import Shell
from gametape.agent.tools.write import Write
from gametape.agent.work import Work
from gametape.core.protocols import Notes, Tool
from gametape.verify.subject import Subject
from gametape.verify.toolbox import Toolbox


def standard_tools(
    work: Work,
    *,
    notes: Notes | None = None,
    toolbox: Toolbox | None = None,
    subject: Subject | None = None,
    python: str = "python3",
    history: bool = False,
    vectors: Vectors | None = None,
    longest: float = 600.0,
) -> list[Tool]:
    """The tools that what is given allows; what is not given, no tool pretends to have.

    They share `work`, so a fork makes its own list over a copy. `python` is the interpreter inside the sandbox.
    `history` says whether the workspace has one and the task allows a look at it. `vectors` asks for semantic search
    and may be shared by all rollouts of a process.
    """
    tools: list[Tool] = [
        Shell(work, longest),
        Read(work),
        Write(work),
        Edit(work),
        Search(),
        Jump(work, python),
    ]
    if toolbox is not None:
        tools.append(Check(work, toolbox, subject))
    if history:
        tools.append(History())
    if vectors is not None:
        tools.append(SemanticSearch(vectors))
    if notes is not None:
        tools += [Remember(notes), Recall(notes)]
    return [*tools, Finish()]


__all__ = ["Vectors", "Work", "standard_tools"]
