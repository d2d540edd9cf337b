"""The tool `shell`: run commands in one live shell."""

from typing import Any

from gametape.agent.agent_state import AgentState
from gametape.agent.tools.argument_schema import parameters_schema
from gametape.agent.tools.tool import ValidatedTool
from gametape.core.messages import ToolResult
from gametape.core.protocols import ShellResult, Workspace

DEFAULT_SECONDS = 120.0

_USUAL_MAXIMUM = 600.0
"""A task that allows more needs more: then a command has all of it unless the agent asks for less."""

_ENDED = {
    "time": "it ran longer than {seconds:g} seconds",
    "cpu": "it used too much processor time",
    "memory": "it used too much memory",
    "processes": "it started too many processes",
    "disk": "it wrote too much to disk",
    "output": "it printed too much",
    "policy": "it kept trying what is forbidden here",
}


class ShellTool(ValidatedTool):
    """The shell lives on between calls; its directory is kept in the agent's state."""

    name = "shell"
    description = (
        "Run a bash command in the workspace, for example to run tests or programs. The shell stays: directory, "
        "variables and background jobs are there for the next command. There is no input, and no network unless you "
        "were told of hosts."
    )

    def __init__(self, state: AgentState, max_seconds: float = 600.0) -> None:
        self._state = state
        self._default = max_seconds if max_seconds > _USUAL_MAXIMUM else min(DEFAULT_SECONDS, max_seconds)
        self.parameters = parameters_schema(
            ("command",),
            command={"type": "string", "minLength": 1, "description": "What to run."},
            timeout={
                "type": "number",
                "minimum": 0.1,
                "maximum": max_seconds,
                "description": f"Seconds after which it is ended; {self._default:g} unless given, at most "
                f"{max_seconds:g}.",
            },
        )

    async def act(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:
        seconds = float(arguments.get("timeout", self._default))
        result = await workspace.shell(arguments["command"], seconds)
        content = _describe(result, seconds, self._state.directory)
        self._state.directory = result.directory
        return ToolResult(content=content, cpu_seconds=result.cpu_seconds)


def _describe(result: ShellResult, seconds: float, directory: str) -> str:
    parts = [part.rstrip("\n") for part in (result.stdout, result.stderr) if part.strip()]
    if result.killed_by:
        reason = _ENDED.get(result.killed_by, result.killed_by).format(seconds=seconds)
        parts.append(f"[the command was ended: {reason}]")
    elif result.exit_code != 0:
        parts.append(f"[exit code {result.exit_code}]")
    if not parts:
        parts.append("[no output]")
    if result.shell_restarted:
        parts.append("[the shell ended with the command and was started anew: its variables and functions are gone]")
    if result.directory != directory:
        parts.append(f"[now in {result.directory}]")
    return "\n".join(parts)
