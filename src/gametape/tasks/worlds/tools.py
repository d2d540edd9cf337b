"""The tools of a world: each takes a thing, what to put there or take away, and some a mode."""

from collections.abc import Sequence
from functools import cache
from typing import Any

from gametape.core.messages import ToolResult
from gametape.core.protocols import Environment
from gametape.tasks.worlds.families import FAMILIES
from gametape.tasks.worlds.place import WorldPlace
from gametape.tasks.worlds.plan import KEEP, Move
from gametape.tasks.worlds.rules import MODES, SPECIAL_TOOLS

_TEXT = {"type": "string"}
ARGUMENTS = ("item", "value")
ARGUMENTS_WITH_MODE = (*ARGUMENTS, "mode")


class WorldTool:
    """A `Tool`. Whatever it is called with uses up the job at hand."""

    def __init__(self, name: str, description: str, arguments: tuple[str, ...]) -> None:
        self.name = name
        self.arguments = arguments
        mode = {"mode": _TEXT | {"enum": list(MODES), "description": "Only where a rule asks for it."}}
        properties: dict[str, Any] = {"item": _TEXT, "value": _TEXT} | (mode if "mode" in arguments else {})
        self.definition = {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": list(ARGUMENTS),
                "additionalProperties": False,
            },
        }

    async def call(self, arguments: dict[str, Any], environment: Environment) -> ToolResult:
        if not isinstance(environment, WorldPlace):
            return ToolResult(content=f"{self.name}: works in its own world only", failed=True, refused=True)
        values = [arguments.get(name) for name in self.arguments]
        words = tuple(value if isinstance(value, str) else "" for value in values)
        told = environment.act(Move(self.name, words))
        return ToolResult(content=told.text, failed=told.failed, finished=told.over)


@cache
def tools_of(family: str) -> Sequence[WorldTool]:
    """The convention's two tools, and those that rules may ask for."""
    names = FAMILIES[family]
    thing = ", ".join(names.kinds)
    return (
        WorldTool(names.put_tool, f"Put a value into a {thing}: the usual tool.", ARGUMENTS_WITH_MODE),
        WorldTool(names.drop_tool, f"Take a value out of a {thing}.", ARGUMENTS),
        *(
            WorldTool(tool, f"Put a value into a {thing} whose marking asks for {tool}.", ARGUMENTS)
            for tool in SPECIAL_TOOLS
        ),
    )


KEEPING = WorldTool(KEEP, "Note a value for later, in place of what was noted before.", ARGUMENTS)


def arguments_of(move: Move) -> dict[str, str]:
    """A call's arguments by name."""
    return dict(zip(ARGUMENTS_WITH_MODE, move.values, strict=False))


def signatures() -> dict[str, list[str]]:
    """By tool of any family: its arguments in their order, which is how terse policies call it."""
    tools = [KEEPING, *(tool for family in FAMILIES for tool in tools_of(family))]
    return {tool.name: list(tool.arguments) for tool in tools}
