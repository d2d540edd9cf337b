"""Puts the parts of streamed tool calls together, as the various servers cut them.

A part belongs to the call at its `index`. Some servers give every call the index 0 and tell calls apart by their id;
some leave out the id, the index or both, and begin a new call with a new name; some repeat the name in every part; some
send the arguments as an object. What is certain is that a call whose arguments are whole is over. Every character is
looked at once, however many parts there are.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from gametape.engines.server.wire_values import read_id, read_text

MAX_CALLS = 64
_MAX_NAME = 1024
_MARK = re.compile(r'["{}]|\\(?:.|\Z)', re.DOTALL)


@dataclass
class ObjectScan:
    """How far the pieces of a JSON object have been looked at, and what is open there."""

    seen: int = 0
    depth: int = 0
    begun: bool = False
    in_string: bool = False
    escaped: bool = False

    def is_over(self, pieces: list[str]) -> bool:
        """Whether the object is closed, as far as braces and quotes tell."""
        for piece in pieces[self.seen :]:
            self._look_at(piece)
        self.seen = len(pieces)
        return self.begun and self.depth == 0 and not self.in_string

    def _look_at(self, piece: str) -> None:
        start, self.escaped = int(self.escaped), False
        for found in _MARK.finditer(piece, start):
            match found[0]:
                case '"':
                    self.in_string = not self.in_string
                case "{" if not self.in_string:
                    self.depth, self.begun = self.depth + 1, True
                case "}" if not self.in_string:
                    self.depth -= 1
                case "\\":
                    self.escaped = True


@dataclass
class PartialCall:
    """A call as far as it has been received."""

    index: int
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    scan: ObjectScan = field(default_factory=ObjectScan)

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    def is_whole(self) -> bool:
        return self.scan.is_over(self.pieces)


@dataclass
class StreamedCallParts:
    """The calls of one reply, in the order in which they began."""

    parts: list[PartialCall] = field(default_factory=list)

    def add(self, part: dict[str, Any]) -> None:
        """Raises `ValueError` or `TypeError` for what is no part of a call."""
        function = part.get("function") or {}
        id_, name, given = read_id(part.get("id")), read_text(function.get("name")), function.get("arguments")
        arguments = json.dumps(given) if given and isinstance(given, dict) else read_text(given)
        call = self._call_of(part.get("index"), id_, name)
        call.id = call.id or id_
        if name and not (call.pieces or name == call.name):
            call.name += name
        if len(call.name) > _MAX_NAME:
            raise ValueError(len(call.name))
        if arguments:
            call.pieces.append(arguments)

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
