"""The tool `history`: git log, blame, diff and commit conventions, where a task allows it.

The workspace's git configuration is hostile. Git runs inside the sandbox, where the agent could run it anyway; options
that would make it hang or run a program are switched off all the same.
"""

import re
from collections import Counter
from typing import Any

from gametape.agent.tools import paths
from gametape.agent.tools.argument_schema import parameters_schema
from gametape.agent.tools.tool import ValidatedTool, run_program
from gametape.core.errors import BadInput
from gametape.core.messages import ToolResult
from gametape.core.protocols import ShellResult, Workspace

_SECONDS = 20.0
_SURVEYED = 200
_GIT = (
    *("GIT_CONFIG_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat"),
    *("git", "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*"),
    *("-c", "core.pager=cat", "-c", "color.ui=never", "-c", "log.showSignature=false"),
)
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color")
_PREFIX = re.compile(r"^([A-Za-z][\w./-]{0,30}(?:\([^)]{1,40}\))?!?|\[[^\]]{1,30}\]):?\s")
_NOT_IMPERATIVE = re.compile(r"(?:ed|ing)$")


class HistoryTool(ValidatedTool):
    name = "history"
    description = (
        "Look at the git history: log (of a path), show (one commit), blame (around a line of a path), diff "
        "(uncommitted changes), or conventions (how commit messages are written here)."
    )
    parameters = parameters_schema(
        ("what",),
        what={"type": "string", "enum": ["log", "show", "blame", "diff", "conventions"]},
        path={"type": "string", "minLength": 1, "description": "Relative to the workspace."},
        line={"type": "integer", "minimum": 1, "description": "For blame: the first line."},
        count={"type": "integer", "minimum": 1, "maximum": 200, "description": "Commits, or lines of blame."},
        commit={"type": "string", "pattern": r"^[0-9A-Za-z][0-9A-Za-z~^]{0,63}$", "description": "For show."},
    )

    async def act(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:
        what, path = arguments["what"], paths.normalize_path(arguments.get("path", "."))
        if what == "blame" and "path" not in arguments:
            raise BadInput("blame needs a path")
        words = _git_arguments(what, path, arguments)
        result = await _git(workspace, *words)
        if result.killed_by and not result.stdout:
            raise BadInput(f"git was ended ({result.killed_by})")
        if result.exit_code != 0 and not result.killed_by:
            raise BadInput(f"git: {(result.stderr.strip().splitlines() or ['it failed'])[0][:300]}")
        text = commit_conventions(result.stdout.splitlines()) if what == "conventions" else result.stdout.rstrip("\n")
        return ToolResult(content=text or _NOTHING[what], cpu_seconds=result.cpu_seconds)


_NOTHING = {
    "log": "no commits",
    "show": "no changes",
    "blame": "the file is empty",
    "diff": "no uncommitted changes",
    "conventions": "",
}


async def has_history(workspace: Workspace) -> bool:
    """Whether the workspace is a git repository of its own, with a commit."""
    result = await _git(workspace, "rev-parse", "--show-prefix", "HEAD")
    return result.exit_code == 0 and result.stdout.startswith("\n")


async def current_branch(workspace: Workspace) -> str | None:
    """The workspace's branch; empty if it is on none, None where there is no readable repository."""
    try:
        head = (await workspace.get(".git/HEAD")).decode("utf-8", "replace").strip()
    except BadInput:
        return None
    return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else ""


def _git_arguments(what: str, path: str, arguments: dict[str, Any]) -> tuple[str, ...]:
    line, count = arguments.get("line", 1), arguments.get("count")
    pathspec = ("--", f":(literal){path}") if path != "." else ()
    if what == "show":
        return "show", *_PLAIN, "--date=short", "--stat", "--patch", arguments.get("commit", "HEAD"), *pathspec
    if what == "blame":
        return "blame", "--date=short", f"-L{line},+{count or 40}", "--no-textconv", "--", path
    if what == "diff":
        return "diff", *_PLAIN, "HEAD", *pathspec
    if what == "log":
        return "log", *_PLAIN, f"-n{count or 20}", "--date=short", "--format=%h %ad %an: %s", *pathspec
    return "log", *_PLAIN, f"-n{count or _SURVEYED}", "--no-merges", "--format=%s", *pathspec


async def _git(workspace: Workspace, *words: str) -> ShellResult:
    return await run_program(workspace, (*_GIT, *words), _SECONDS)


def commit_conventions(subjects: list[str]) -> str:
    """How these commit subjects are written: prefixes, mood, length, and the latest five."""
    subjects = [subject for subject in subjects if subject.strip()]
    if not subjects:
        return "no commits"
    prefixes = Counter(match[1] for subject in subjects if (match := _PREFIX.match(subject)) and _is_prefix(subject))
    bare = [_PREFIX.sub("", subject) if _is_prefix(subject) else subject for subject in subjects]
    first = [subject.split()[0] for subject in bare if subject.split()]
    imperative = sum(_is_imperative(word) for word in first) / max(1, len(first))
    capital = sum(word[0].isupper() for word in first) / max(1, len(first))
    dotted = sum(subject.rstrip().endswith(".") for subject in subjects) / len(subjects)
    lengths = sorted(map(len, subjects))
    used = ", ".join(f"{prefix} ({number})" for prefix, number in prefixes.most_common(6)) or "none"
    return "\n".join(
        (
            f"{len(subjects)} commit subjects",
            f"prefixes: {used}; on {sum(prefixes.values()) / len(subjects):.0%} of them",
            f"imperative: {imperative:.0%}; capital first letter: {capital:.0%}; final full stop: {dotted:.0%}",
            f"length: median {lengths[len(lengths) // 2]}, nine in ten up to {lengths[len(lengths) * 9 // 10]}",
            "latest:",
            *(f"  {subject[:120]}" for subject in subjects[:5]),
        )
    )


def _is_prefix(subject: str) -> bool:
    """Whether a subject begins with a prefix such as `fix(core):` or `[core]`."""
    match = _PREFIX.match(subject)
    return match is not None and (match[1].startswith("[") or match[0].rstrip().endswith(":"))


def _is_imperative(word: str) -> bool:
    """An estimate by the ending: `add`, not `added`, `adding` or `adds`."""
    plain = word.lower().strip(".,:;")
    third_person = plain.endswith("s") and not plain.endswith("ss")
    return plain.isalpha() and not third_person and (len(plain) <= 4 or not _NOT_IMPERATIVE.search(plain))
