"""The tool `search`: find a regular expression in the files of the workspace."""

from typing import Any

from gametape.agent.tools import paths
from gametape.agent.tools.argument_schema import parameters_schema
from gametape.agent.tools.tool import ValidatedTool, run_program
from gametape.core.errors import BadInput
from gametape.core.messages import ToolResult
from gametape.core.protocols import ShellResult, Workspace

MAX_MATCHES = 100
_PER_FILE = 50
_WIDTH = 300
_SECONDS = 20.0
_NO_SUCH_PROGRAM = 127
_SKIPPED = (".git", "__pycache__", "node_modules", ".venv", ".mypy_cache", ".ruff_cache", ".pytest_cache")


class SearchTool(ValidatedTool):
    """Runs ripgrep without any configuration or ignore file of the workspace; grep where it is not installed."""

    name = "search"
    description = "Find lines that match a regular expression, in all files or below a path. Case counts."
    parameters = parameters_schema(
        ("pattern",),
        pattern={"type": "string", "minLength": 1, "maxLength": 2000, "description": "A regular expression."},
        path={"type": "string", "description": "File or directory to look in, relative to the workspace."},
        glob={"type": "string", "maxLength": 200, "description": "Only files whose name matches, such as *.py."},
    )

    async def act(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:
        pattern, path, glob = (
            arguments["pattern"],
            paths.normalize_path(arguments.get("path", ".")),
            arguments.get("glob"),
        )
        if "\0" in pattern or "\n" in pattern or "\0" in (glob or ""):
            raise BadInput("a pattern is one line, without NUL bytes")
        result = await run_program(workspace, _ripgrep(pattern, path, glob), _SECONDS)
        if result.exit_code == _NO_SUCH_PROGRAM:
            result = await run_program(workspace, _grep(pattern, path, glob), _SECONDS)
        return ToolResult(content=_matches(result, path), cpu_seconds=result.cpu_seconds)


def _ripgrep(pattern: str, path: str, glob: str | None) -> list[str]:
    argv = ["rg", "--no-config", "--no-ignore", "--hidden", "--line-number", "--with-filename", "--no-heading"]
    argv += ["--color=never", f"--max-columns={_WIDTH}", "--max-columns-preview", f"--max-count={_PER_FILE}"]
    argv += ["--sort=path", *([f"--glob={glob}"] if glob else [])]
    argv += [f"--glob=!{name}" for name in _SKIPPED]
    return [*argv, f"--regexp={pattern}", "--", paths.as_argument(path)]


def _grep(pattern: str, path: str, glob: str | None) -> list[str]:
    argv = ["grep", "--recursive", "--line-number", "--with-filename", "--binary-files=without-match"]
    argv += ["--extended-regexp", "--devices=skip", f"--max-count={_PER_FILE}", "--color=never"]
    argv += [f"--include={glob}"] if glob else []
    argv += [f"--exclude-dir={name}" for name in _SKIPPED]
    return [*argv, f"--regexp={pattern}", "--", paths.as_argument(path)]


def _matches(result: ShellResult, path: str) -> str:
    lines = [_short(line) for line in result.stdout.splitlines()]
    if not lines and result.killed_by:
        raise BadInput(f"the search was ended ({result.killed_by}); narrow it with path or glob")
    if not lines and result.exit_code > 1:
        raise BadInput(_reason(result.stderr))
    if not lines:
        return "no matches" + ("" if path == "." else f" in {path}")
    matches = lines[:MAX_MATCHES]
    if len(lines) > MAX_MATCHES or result.killed_by:
        matches.append(
            f"[{MAX_MATCHES} of {'more than ' if result.killed_by else ''}{len(lines):,} matches; narrow it]"
        )
    return "\n".join(matches)


def _short(line: str) -> str:
    line = line.removeprefix("./")
    return line if len(line) <= _WIDTH + 200 else f"{line[: _WIDTH + 200]} ..."


def _reason(stderr: str) -> str:
    """The last line of the error; ripgrep prints the pattern before it."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    last = next((line for line in reversed(lines) if line.startswith("error:")), lines[-1] if lines else "")
    bad = any("regex parse error" in line for line in lines) or "Unmatched" in last or "Invalid" in last
    return f"{'not a regular expression' if bad else 'the search failed'}: {last.removeprefix('error:').strip()[:300]}"
