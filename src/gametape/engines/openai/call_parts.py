"""Puts the parts of streamed tool calls together, as the various servers cut them.

A part belongs to the call at its `index`. Some servers give every call the index 0 and tell calls apart by their id;
some leave out the id, the index or both, and begin a new call with a new name; some repeat the name in every part; some
send the arguments as an object. What is certain is that a call whose arguments are whole is over.
"""

import json
from dataclasses import dataclass, field
from typing import Any

MAX_CALLS = 64


@dataclass
class PartialCall:
    """A call as far as it has been received."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""

    def is_whole(self) -> bool:
        try:
            return isinstance(json.loads(self.arguments), dict)
        except (ValueError, RecursionError):
            return False


@dataclass
class StreamedCallParts:
    """The calls of one reply, in the order in which they began."""

    parts: list[PartialCall] = field(default_factory=list)

    def add(self, part: dict[str, Any]) -> None:
        """Raises `ValueError` or `TypeError` for what is no part of a call."""
        function = part.get("function") or {}
        id_, name, arguments = part.get("id") or "", function.get("name") or "", function.get("arguments") or ""
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments)
        call = self._call_of(part.get("index"), id_, name)
        call.id = call.id or id_
        if name and not (call.arguments or name == call.name):
            call.name += name
        call.arguments += arguments

    def in_order(self) -> list[PartialCall]:
        return sorted(self.parts, key=lambda call: call.index)

    def _call_of(self, index: object, id_: str, name: str) -> PartialCall:
        if index is not None and type(index) is not int:
            raise TypeError(index)
        at_index = [call for call in self.parts if index is None or call.index == index]
        same_id = [call for call in self.parts if id_ and call.id == id_]
        if same_id:
            return same_id[-1]
        if at_index:
            last = at_index[-1]
            other_id = bool(id_ and last.id)
            if not other_id and not (name and last.name and last.is_whole()):
                return last
        if len(self.parts) >= MAX_CALLS:
            raise ValueError(len(self.parts))
        number = index if isinstance(index, int) else max((call.index for call in self.parts), default=-1) + 1
        self.parts.append(PartialCall(number))
        return self.parts[-1]
