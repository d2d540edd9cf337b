"""`check`: what the linter and the type checker say about the files that were changed.

Both run where the verifier runs them, on exported copies, with the verifier's settings: what the agent sees here is
what counts later. Findings that the task's own trees have are not shown.
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
    """Without a subject there is no baseline: then only files edited through tools, or named, are checked."""

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

    def __init__(self, state: AgentState, toolbox: StaticAnalyzer, subject: LoadedTask | None = None) -> None:
        self._work = state
        self._toolbox = toolbox
        self._subject = subject

    async def act(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:
        wanted = [paths.normalize_path(path) for path in arguments.get("paths", [])]
        subject = self._subject or _stand_in()
        sources = await self._sources(workspace, subject, wanted)
        start = subject.start.files
        changed = {path for path, content in sources.files.items() if start.get(path) != content}
        if wanted:
            changed = {path for path in changed if is_under(path, wanted)}
        if not changed:
            return ToolResult(content="no Python file that was changed" + (" lies there" if wanted else ""))
        content = await asyncio.to_thread(_checked, self._toolbox, subject, sources, changed)
        note = "" if self._subject else "\n[there is no baseline here: older findings in these files are shown too]"
        return ToolResult(content=content + note)

    async def _sources(self, workspace: Workspace, subject: LoadedTask, wanted: Sequence[str]) -> SourceTree:
        """The sources as they are now: all of a task's, else what was edited or asked for."""
        names = await paths.list_files(workspace, (".py", ".pyi"))
        if self._subject is None:
            chosen = [*self._work.edited_paths, *wanted]
            names = [name for name in names if is_under(name, chosen)] if chosen else []
        task = subject.task
        names = [name for name in names if is_under(name, task.source_paths) and not is_under(name, task.test_paths)]
        if len(names) > _MOST_FILES:
            raise BadInput(f"there are {len(names):,} Python files, too many to check; at most {_MOST_FILES:,}")
        found = {}
        for name in names:
            try:
                content = await workspace.get(name)
            except BadInput:
                continue  # gone meanwhile, or a link by now
            if len(content) <= MOST_BYTES:
                found[name] = content
        return own_sources(task, SourceTree(found))


def _checked(toolbox: StaticAnalyzer, subject: LoadedTask, sources: SourceTree, changed: set[str]) -> str:
    baseline = toolbox.baseline(subject)
    told = []
    fresh: list[tuple[str, ToolFinding]] = []
    asked = (("ruff", toolbox.lint_report, baseline.lint), ("mypy", toolbox.type_report, baseline.types))
    for tool, run, known in asked:
        report: ToolReport = run(subject, sources)
        if report.error:
            told.append(f"{tool}: {report.error}")
        elif known is None:
            told.append(f"{tool}: the task's own files cannot be checked, so nothing can be said")
        else:
            fresh += [(tool, one) for one in new_findings.select_new(report.findings, known) if one.file in changed]
    if not fresh and not told:
        return f"ruff and mypy find nothing new in {', '.join(sorted(changed)[:10])}"
    fresh.sort(key=lambda one: (one[1].file, one[1].line))
    file = None
    for tool, finding in fresh[:_MOST_FINDINGS]:
        if finding.file != file:
            file = finding.file
            told.append(file)
        message = finding.message.splitlines()[0][:300] if finding.message else ""
        told.append(f"  {finding.line}: {message} [{tool} {finding.code}]")
    if len(fresh) > _MOST_FINDINGS:
        told.append(f"... and {len(fresh) - _MOST_FINDINGS} more findings")
    return sanitize_text("\n".join(told))


def _stand_in() -> LoadedTask:
    """A task of nothing, for workspaces without one."""
    tests = TaskTests(fail_to_pass=[], pass_to_pass=[])
    task = Task(name="workspace", mode="shared", instruction="", source_paths=["."], test_paths=[], tests=tests)
    return LoadedTask(task=task, start=SourceTree(), suite=SourceTree())
