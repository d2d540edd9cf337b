"""Tools made from plain Python functions: the signature is the schema, the docstring the description for the model."""

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError

from gametape.agent.state_environment import StateWorkspace
from gametape.core.errors import BadInput
from gametape.core.messages import ToolResult
from gametape.core.protocols import Workspace

_CONTEXT = ("state", "workspace")


class FunctionTool:
    """A `Tool` that calls a function. Arguments are checked against its type hints before it is called.

    A parameter called `state` gets the state of a `StateEnvironment`, one called `workspace` gets the workspace; all
    others are arguments of the tool. The function may be a coroutine, and answers with text or a `ToolResult`. It
    refuses a call by raising `BadInput`.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise BadInput(f"tool: {function!r} is no function")
        self.name = function.__name__
        self._function = function
        parameters = inspect.signature(function).parameters
        if starred := [
            name for name, each in parameters.items() if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
        ]:
            raise BadInput(f"tool {self.name}: parameter {starred[0]!r} stands for any number of arguments; name each")
        try:
            hints = get_type_hints(function)
        except NameError as error:
            raise BadInput(f"tool {self.name}: a type hint cannot be resolved: {error}") from None
        if missing := [name for name in parameters if name not in hints and name not in _CONTEXT]:
            raise BadInput(f"tool {self.name}: parameter {missing[0]!r} has no type hint")
        self._context = [name for name in parameters if name in _CONTEXT]
        fields: dict[str, Any] = {
            name: (hints[name], ... if parameter.default is parameter.empty else parameter.default)
            for name, parameter in parameters.items()
            if name not in _CONTEXT
        }
        try:
            self._arguments: type[BaseModel] = create_model(
                f"{self.name}_arguments", __config__=ConfigDict(extra="forbid"), **fields
            )
        except PydanticSchemaGenerationError as error:
            raise BadInput(f"tool {self.name}: a type hint has no JSON schema: {str(error).splitlines()[0]}") from None
        schema = self._arguments.model_json_schema()
        self.definition: dict[str, Any] = {
            "name": self.name,
            "description": inspect.getdoc(function) or "",
            "parameters": {
                **{key: value for key, value in schema.items() if key not in ("title", "properties")},
                "properties": {
                    name: {key: value for key, value in field.items() if key != "title"}
                    for name, field in schema.get("properties", {}).items()
                },
            },
        }

    async def call(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:
        try:
            values = self._arguments.model_validate(arguments)
        except ValidationError as error:
            return ToolResult(content=f"{self.name}: {_first_problem(error)}", failed=True, refused=True)
        try:
            context = {name: self._context_value(name, workspace) for name in self._context}
            answer = self._function(**context, **{name: getattr(values, name) for name in type(values).model_fields})
            answer = await answer if inspect.isawaitable(answer) else answer
        except BadInput as error:
            return ToolResult(content=f"{self.name}: {error}", failed=True)
        return answer if isinstance(answer, ToolResult) else ToolResult(content=str(answer))

    def _context_value(self, name: str, workspace: Workspace) -> Any:
        if name == "workspace":
            return workspace
        if not isinstance(workspace, StateWorkspace):
            raise BadInput("this tool needs the state of its own environment")
        return workspace.state


def tool(function: Callable[..., Any]) -> FunctionTool:
    """Make a tool of a function: `@tool` above it."""
    return FunctionTool(function)


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    return f"argument {where!r}: {problem['msg']}" if where else str(problem["msg"])
