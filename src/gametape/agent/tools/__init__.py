"""The tools of an agent, each in a file of its own, and the list of them for a task."""

from gametape.agent.agent_state import AgentState
from gametape.agent.tools.check import CheckTool
from gametape.agent.tools.edit import EditTool
from gametape.agent.tools.finish import FinishTool
from gametape.agent.tools.history import HistoryTool
from gametape.agent.tools.jump import JumpTool
from gametape.agent.tools.memory import RecallTool, RememberTool
from gametape.agent.tools.read import ReadTool
from gametape.agent.tools.search import SearchTool
from gametape.agent.tools.semantic_search import EmbeddingCache, SemanticSearchTool
from gametape.agent.tools.shell import ShellTool
from gametape.agent.tools.write import WriteTool
from gametape.core.protocols import NoteStore, Tool
from gametape.record.loaded_task import LoadedTask
from gametape.verify.static_analysis.analyzer import StaticAnalyzer


def standard_tools(
    state: AgentState,
    *,
    notes: NoteStore | None = None,
    toolbox: StaticAnalyzer | None = None,
    subject: LoadedTask | None = None,
    python: str = "python3",
    history: bool = False,
    embeddings: EmbeddingCache | None = None,
    max_seconds: float = 600.0,
) -> list[Tool]:
    """The tools that what is given allows; what is not given, no tool pretends to have.

    They share `work`, so a fork makes its own list over a copy. `python` is the interpreter inside the sandbox.
    `history` says whether the workspace has one and the task allows a look at it. `vectors` asks for semantic search
    and may be shared by all rollouts of a process.
    """
    tools: list[Tool] = [
        ShellTool(state, max_seconds),
        ReadTool(state),
        WriteTool(state),
        EditTool(state),
        SearchTool(),
        JumpTool(state, python),
    ]
    if toolbox is not None:
        tools.append(CheckTool(state, toolbox, subject))
    if history:
        tools.append(HistoryTool())
    if embeddings is not None:
        tools.append(SemanticSearchTool(embeddings))
    if notes is not None:
        tools += [RememberTool(notes), RecallTool(notes)]
    return [*tools, FinishTool()]


__all__ = ["AgentState", "EmbeddingCache", "standard_tools"]
