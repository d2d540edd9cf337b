"""`ValidatedTool`: the base class of our tools, which checks arguments against a schema before use."""

import shlex
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from gametape.agent.tools import argument_schema
from gametape.agent.tools.argument_schema import JsonSchema
from gametape.core.errors import BadInput
from gametape.core.messages import ToolResult
from gametape.core.protocols import ShellResult, Workspace
from gametape.sandbox.policy import HOME, WORKSPACE

_CLEAN = ("/usr/bin/env", "-i", "PATH=/usr/local/bin:/usr/bin:/bin", f"HOME={HOME}", "LANG=C.UTF-8", "TERM=dumb")


class ValidatedTool(ABC):
    """A `Tool` whose `act` gets only arguments that match the schema, and may refuse them with `BadInput`."""

    name: str
    description: str
    parameters: JsonSchema

    @property
    def definition(self) -> dict[str, Any]:
        return {"name": self.name, "description": self.description, "parameters": self.parameters}

    async def call(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:
        if problem := argument_schema.argument_problem(self.parameters, arguments):
            return ToolResult(content=f"{self.name}: {problem}", failed=True, refused=True)
        try:
            return await self.act(arguments, workspace)
        except BadInput as error:
            return ToolResult(content=f"{self.name}: {error}", failed=True)

    @abstractmethod
    async def act(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult: ...


async def run_program(workspace: Workspace, argv: Sequence[str], seconds: float) -> ShellResult:
    """Run a program in the workspace with a clean environment. The agent's shell keeps its state."""
    words = shlex.join((*_CLEAN, *argv))
    return await workspace.shell(f"(builtin cd {WORKSPACE} && exec {words})", seconds)
