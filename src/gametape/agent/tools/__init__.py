"""The agent's tools, one file each, and `standard_tools`, the list of them for a rollout."""

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
    analyzer: StaticAnalyzer | None = None,
    task: LoadedTask | None = None,
    python: str = "python3",
    history: bool = False,
    embeddings: EmbeddingCache | None = None,
    max_seconds: float = 600.0,
) -> list[Tool]:
    """The tools for which what they need is given: notes, a static analyzer, git history, embeddings.

    They share `state`, so a fork makes its own list over a copy. `python` is the interpreter inside the sandbox.
    `history` says that the workspace has a git history and that the task allows a look at it. `embeddings` adds
    semantic search; all rollouts of a process may share it.
    """
    tools: list[Tool] = [
        ShellTool(state, max_seconds),
        ReadTool(state),
        WriteTool(state),
        EditTool(state),
        SearchTool(),
        JumpTool(state, python),
    ]
    if analyzer is not None:
        tools.append(CheckTool(state, analyzer, task))
    if history:
        tools.append(HistoryTool())
    if embeddings is not None:
        tools.append(SemanticSearchTool(embeddings))
    if notes is not None:
        tools += [RememberTool(notes), RecallTool(notes)]
    return [*tools, FinishTool()]


__all__ = ["AgentState", "EmbeddingCache", "standard_tools"]
