"""The arguments of a tool call as people read them: short ones in a line, texts below it, an edit as a diff."""

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gametape.studio.step_view import CallView

_EDITS = (("old", "new"), ("old_str", "new_str"), ("old_string", "new_string"), ("search", "replace"))
"""The names that tools give to the text that goes and the text that takes its place."""


@dataclass(frozen=True)
class ArgumentLayout:
    """`blocks` are arguments of several lines; `diff` are the lines of an edit, empty where there is none."""

    short: dict[str, str]
    blocks: dict[str, str]
    diff: list[str]


def call_parts(call: CallView) -> ArgumentLayout:
    arguments = call.arguments if isinstance(call.arguments, dict) else {"arguments": call.arguments}
    keys, diff = _edit(arguments)
    rest = {key: value for key, value in arguments.items() if key not in keys}
    blocks = {key: value for key, value in rest.items() if _is_block(value)}
    return ArgumentLayout({key: _short(value) for key, value in rest.items() if key not in blocks}, blocks, diff)


def is_diff(lines: Sequence[str]) -> bool:
    """Whether a text is a unified diff, or a patch in the form that some agents write."""
    heads = [line[:4] for line in lines[:40]]
    return ("--- " in heads and "+++ " in heads) or any(line.startswith("*** Begin Patch") for line in lines[:5])


def _edit(arguments: Mapping[str, Any]) -> tuple[tuple[str, ...], list[str]]:
    for old, new in _EDITS:
        if isinstance(arguments.get(old), str) and isinstance(arguments.get(new), str):
            before, after = arguments[old].splitlines(), arguments[new].splitlines()
            return (old, new), [*difflib.unified_diff(before, after, lineterm="", n=2)][3:]
    return (), []


def _is_block(value: Any) -> bool:
    return isinstance(value, str) and "\n" in value.strip("\n")


def _short(value: Any) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
