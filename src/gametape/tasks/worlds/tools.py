"""The tools of worlds, and the vocabulary of everything that worlds can say.

A tool takes an item and a value to put there or remove; the usual tool also takes a mode.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from gametape.core.messages import ToolResult
from gametape.core.protocols import Workspace
from gametape.tasks.worlds.families import FAMILIES, VALUES
from gametape.tasks.worlds.plan import KEEP_TOOL_NAME, WorldAction
from gametape.tasks.worlds.rules import DEMANDS, MARKINGS, MODES, SPECIAL_TOOLS, rule_text
from gametape.tasks.worlds.workspace import WorldWorkspace

_TEXT = {"type": "string"}
ARGUMENTS = ("item", "value")
ARGUMENTS_WITH_MODE = (*ARGUMENTS, "mode")


class WorldTool:
    """A `Tool`. Every call uses up the current job."""

    def __init__(self, name: str, description: str, arguments: tuple[str, ...]) -> None:
        self.name = name
        self.arguments = arguments
        mode = {"mode": _TEXT | {"enum": list(MODES), "description": "Only where a rule asks for it."}}
        properties: dict[str, Any] = {"item": _TEXT, "value": _TEXT} | (mode if "mode" in arguments else {})
        self.definition: dict[str, Any] = {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": properties,
                "required": list(ARGUMENTS),
                "additionalProperties": False,
            },
        }

    async def call(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:
        if not isinstance(workspace, WorldWorkspace):
            return ToolResult(content=f"{self.name}: works in its own world only", failed=True, refused=True)
        values = [arguments.get(name) for name in self.arguments]
        words = tuple(value if isinstance(value, str) else "" for value in values)
        reply = workspace.act(WorldAction(self.name, words))
        return ToolResult(content=reply.text, failed=reply.failed, finished=reply.done)


@cache
def family_tools(family: str) -> Sequence[WorldTool]:
    """The two tools of the convention, and those that rules may demand."""
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


KEEP_TOOL = WorldTool(KEEP_TOOL_NAME, "Note a value for later, in place of what was noted before.", ARGUMENTS)


def action_arguments(action: WorldAction) -> dict[str, str]:
    """The arguments of a call by name."""
    return dict(zip(ARGUMENTS_WITH_MODE, action.values, strict=False))


def tool_signatures() -> dict[str, list[str]]:
    """By tool of any family: its argument names in order, for policies of the terse chat format."""
    tools = [KEEP_TOOL, *(tool for family in FAMILIES for tool in family_tools(family))]
    return {tool.name: list(tool.arguments) for tool in tools}


_FIXED_WORDS = (
    "first next ok done , : error at which is not plain rule no job left such name tool value mode in it end too many "
    "words code of keep the"
)


def vocabulary_words() -> list[str]:
    """Every word of worlds, in a fixed order."""
    texts = [_FIXED_WORDS, rule_text("", "", ""), *DEMANDS, *MARKINGS, *VALUES, *tool_signatures()]
    for family in FAMILIES.values():
        texts += [*family.kinds, *family.items, family.put_text, family.drop_text]
    word_lists = (re.sub(r"\{\w+\}", "", text).split() for text in texts)
    return list(dict.fromkeys(word for text in word_lists for word in text))
