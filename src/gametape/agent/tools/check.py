"""The tool `check`: lint and type-check the files that were changed.

Both run as the verifier runs them, on copies and with its settings, so the agent sees the findings that count later.
Findings that the task's own trees have are not shown.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from gametape.agent.agent_state import AgentState
from gametape.agent.text_file import sanitize_text
from gametape.agent.tools import paths
from gametape.agent.tools.argument_schema import parameters_schema
from gametape.agent.tools.tool import ValidatedTool
from gametape.core.errors import BadInput
from gametape.core.messages import ToolResult
from gametape.core.protocols import Workspace
from gametape.core.task import Task, TaskTests
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree, is_under
from gametape.verify.layers import new_findings
from gametape.verify.static_analysis.analyzer import StaticAnalyzer
from gametape.verify.static_analysis.findings import ToolFinding, ToolReport
from gametape.verify.static_analysis.python_source import MOST_BYTES, own_sources

_MOST_FILES = 2000
_MOST_FINDINGS = 50


class CheckTool(ValidatedTool):
    """Without a task there is no baseline: then only files that were edited through tools, or named, are checked."""

    name = "check"
    description = (
        "Lint and type-check the Python files changed so far (ruff and mypy), or only the given paths. Shows new "
        "findings, by file. Use it before finishing."
    )
    parameters = parameters_schema(
        paths={
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "maxItems": 50,
            "description": "Files or directories, relative to the workspace.",
        }
    )

    def __init__(self, state: AgentState, analyzer: StaticAnalyzer, task: LoadedTask | None = None) -> None:
        self._state = state
        self._analyzer = analyzer
        self._task = task

    async def act(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:
        wanted = [paths.normalize_path(path) for path in arguments.get("paths", [])]
        task = self._task or _empty_task()
        sources = await self._sources(workspace, task, wanted)
        start = task.start.files
        changed = {path for path, content in sources.files.items() if start.get(path) != content}
        if wanted:
            changed = {path for path in changed if is_under(path, wanted)}
        if not changed:
            return ToolResult(content="no Python file that was changed" + (" lies there" if wanted else ""))
        content = await asyncio.to_thread(_new_findings, self._analyzer, task, sources, changed)
        note = "" if self._task else "\n[there is no baseline here: older findings in these files are shown too]"
        return ToolResult(content=content + note)

    async def _sources(self, workspace: Workspace, task: LoadedTask, wanted: Sequence[str]) -> SourceTree:
        """The current sources: all of a task's, else the files that were edited or asked for."""
        names = await paths.list_files(workspace, (".py", ".pyi"))
        if self._task is None:
            roots = [*self._state.edited_paths, *wanted]
            names = [name for name in names if is_under(name, roots)] if roots else []
        sources, tests = task.task.source_paths, task.task.test_paths
        names = [name for name in names if is_under(name, sources) and not is_under(name, tests)]
        if len(names) > _MOST_FILES:
            raise BadInput(f"there are {len(names):,} Python files, too many to check; at most {_MOST_FILES:,}")
        files = {}
        for name in names:
            try:
                content = await workspace.get(name)
            except BadInput:
                continue  # gone meanwhile, or a link by now
            if len(content) <= MOST_BYTES:
                files[name] = content
        return own_sources(task.task, SourceTree(files))


def _new_findings(analyzer: StaticAnalyzer, task: LoadedTask, sources: SourceTree, changed: set[str]) -> str:
    baseline = analyzer.baseline(task)
    lines = []
    fresh: list[tuple[str, ToolFinding]] = []
    tools = (("ruff", analyzer.lint_report, baseline.lint), ("mypy", analyzer.type_report, baseline.types))
    for tool, run, known in tools:
        report: ToolReport = run(task, sources)
        if report.error:
            lines.append(f"{tool}: {report.error}")
        elif known is None:
            lines.append(f"{tool}: the task's own files cannot be checked, so nothing can be said")
        else:
            fresh += [(tool, new) for new in new_findings.select_new(report.findings, known) if new.file in changed]
    if not fresh and not lines:
        return f"ruff and mypy find nothing new in {', '.join(sorted(changed)[:10])}"
    fresh.sort(key=lambda pair: (pair[1].file, pair[1].line))
    file = None
    for tool, finding in fresh[:_MOST_FINDINGS]:
        if finding.file != file:
            file = finding.file
            lines.append(file)
        message = finding.message.splitlines()[0][:300] if finding.message else ""
        lines.append(f"  {finding.line}: {message} [{tool} {finding.code}]")
    if len(fresh) > _MOST_FINDINGS:
        lines.append(f"... and {len(fresh) - _MOST_FINDINGS} more findings")
    return sanitize_text("\n".join(lines))


def _empty_task() -> LoadedTask:
    """A task without files, for workspaces that have none."""
    tests = TaskTests(fail_to_pass=[], pass_to_pass=[])
    task = Task(name="workspace", mode="shared", instruction="", source_paths=["."], test_paths=[], tests=tests)
    return LoadedTask(task=task, start=SourceTree(), suite=SourceTree())
