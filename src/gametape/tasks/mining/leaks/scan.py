"""Find deleted code in what the agent can read. What can be copied need not be written.

A copy is a leak if it is whole, or if it is a long run of statements. Methods that merely resemble each other are not:
they are what a person would look at too.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from gametape.record.source_tree import SourceTree
from gametape.tasks.mining.functions import Function, functions_in
from gametape.tasks.mining.leaks.file_index import MIN_INDEXED_NODES, CodeUnit, FilePieces, index_file
from gametape.tasks.mining.leaks.fingerprints import (
    MIN_FINGERPRINT_NODES,
    NormalizedStatement,
    fingerprint,
    functions_by_line,
    normalized_statements,
)
from gametape.tasks.mining.leaks.outside_workspace import NOTHING_OUTSIDE, OutsideIndex

MIN_RUN_STATEMENTS, MIN_RUN_NODES, MIN_RUN_SHARE = 6, 50, 0.25
"""So many statements in a row, of this size together, are a copy of a part, if they are a share of the body or twice as
many. Below that, methods of one family meet."""
TEXT_COPY_SHARE, MIN_TEXT_COPY_NODES = 0.6, 40
"""So much of the larger statements of a body, in its order, is a copy where code is not expected: in text."""
MIN_WHOLE_COPY_NODES = 40
"""A whole body of this size that stands in a longer function is a copy. In text, smaller ones are."""


@dataclass(frozen=True)
class CodeLeak:
    """Where the body of a deleted function can be read."""

    function: Function
    where: str
    """A path in the tree, or an absolute one outside; `!` leads into an archive."""
    line: int
    kind: Literal["copy", "part", "text", "outside"]
    """`copy`: another function has the same body. `part`: much of it stands in other code. `text`: in documentation, a
    comment or a string. `outside`: in what is installed on the machine."""
    copy: Function | None = None
    """The function with the same body, as the original has it: it could be deleted too."""


class DeletedBody(NamedTuple):
    """A deleted body, as it is looked for."""

    fingerprint: str | None
    statements: tuple[NormalizedStatement, ...]
    keys: frozenset[int | str]

    @property
    def size(self) -> int:
        return sum(one.size for one in self.statements)


def find_leaks(
    deleted: Mapping[Function, str], view: SourceTree, outside: OutsideIndex = NOTHING_OUTSIDE
) -> list[CodeLeak]:
    """Where deleted functions, given with the original text of their files, stand in the agent's starting tree or
    outside it, in the order of the functions and places."""
    bodies = {function: read_body(function, source) for function, source in deleted.items()}
    wanted = frozenset[int | str]().union(*(body.keys for body in bodies.values()))
    originals = {function.path: source for function, source in deleted.items()}
    found: set[CodeLeak] = set()
    for path, pieces in (one for file in view.files.items() for one in index_file(*file)):
        for leak in _in_file(bodies, wanted, path, pieces):
            copied = leak.kind == "copy"
            found.add(_with_copy(leak, bodies[leak.function], view, originals) if copied else leak)
    for function, body in bodies.items():
        places = outside.locations.get(body.fingerprint or "", ())
        found.update(CodeLeak(function, path, line, "outside") for path, line in places)
    return sorted(found, key=lambda leak: (leak.function, leak.where, leak.line, leak.kind))


@functools.lru_cache(maxsize=10_000)
def read_body(function: Function, source: str) -> DeletedBody:
    """The body of a function in the text of its file; empty if it is not there."""
    node = functions_by_line(source).get(function.line)
    if node is None:
        return DeletedBody(None, (), frozenset())
    mark, found = fingerprint(node), tuple(normalized_statements(node.body))
    keys: set[int | str] = {one.key for one in found if one.size >= MIN_INDEXED_NODES}
    return DeletedBody(mark, found, frozenset(keys | {mark} if mark else keys))


def _in_file(
    bodies: Mapping[Function, DeletedBody], wanted: frozenset[int | str], path: str, pieces: FilePieces
) -> Iterator[CodeLeak]:
    for before, piece in pieces:
        if piece.keys.isdisjoint(wanted):
            continue
        for function, body in bodies.items():
            if not piece.keys.isdisjoint(body.keys):
                for unit in piece.units:
                    if found := match_leak(body, unit):
                        yield CodeLeak(function, path, before + found[1], found[0])


def match_leak(body: DeletedBody, unit: CodeUnit) -> tuple[Literal["copy", "part", "text"], int] | None:
    """Whether a unit gives a body away, how, and in which line."""
    if body.fingerprint in unit.fingerprints:
        return "copy", unit.line
    if body.size < MIN_FINGERPRINT_NODES:
        return None
    text = unit.kind == "text"
    count, size, line = _longest_run(body.statements, unit.statements)
    whole = count == len(body.statements) and (text or size >= MIN_WHOLE_COPY_NODES)
    part = (
        count >= MIN_RUN_STATEMENTS
        and size >= MIN_RUN_NODES
        and (size >= MIN_RUN_SHARE * body.size or count >= 2 * MIN_RUN_STATEMENTS)
    )
    if whole or part or (unit.kind != "function" and _mostly_there(body.statements, unit.statements)):
        return "text" if text else "part", line
    return None


def _longest_run(body: Sequence[NormalizedStatement], unit: Sequence[NormalizedStatement]) -> tuple[int, int, int]:
    """The largest run of statements that both have: how many, how many nodes, and its line in the unit."""
    places: dict[int, list[int]] = {}
    for place, one in enumerate(unit):
        places.setdefault(one.key, []).append(place)
    best = (0, 0, 0)
    for start, one in enumerate(body):
        for place in places.get(one.key, ()):
            if start and place and body[start - 1].key == unit[place - 1].key:
                continue  # the middle of a run that was seen
            count = size = 0
            for mine, other in zip(body[start:], unit[place:], strict=False):
                if mine.key != other.key:
                    break
                count, size = count + 1, size + mine.size
            if size > best[1]:
                best = (count, size, unit[place].line)
    return best


def _mostly_there(body: Sequence[NormalizedStatement], unit: Sequence[NormalizedStatement]) -> bool:
    """Whether most of the telling statements of a body are in a unit, in their order."""
    mine = [one for one in body if one.size >= MIN_INDEXED_NODES]
    whole = sum(one.size for one in mine)
    if whole < MIN_TEXT_COPY_NODES:
        return False
    keys = {one.key for one in mine}
    others = [one.key for one in unit if one.key in keys]
    row = [0] * (1 + len(others))
    for one in mine:
        last = row
        row = [0]
        for place, key in enumerate(others):
            row.append(last[place] + one.size if key == one.key else max(last[place + 1], row[place]))
    return row[-1] >= TEXT_COPY_SHARE * whole


def _with_copy(leak: CodeLeak, body: DeletedBody, view: SourceTree, originals: Mapping[str, str]) -> CodeLeak:
    """Name the function that has the same body, as it stands in the original: what was deleted moved its lines."""
    text = originals.get(leak.where) or (view.text(leak.where) if leak.where in view else "")
    names = {one.qualname for one in _at(leak.where, view, leak.line)}
    same = (one for one in functions_in(leak.where, text) if one != leak.function and one.qualname in names)
    return replace(leak, copy=next((one for one in same if read_body(one, text).fingerprint == body.fingerprint), None))


def _at(path: str, view: SourceTree, line: int) -> list[Function]:
    return [one for one in functions_in(path, view.text(path)) if one.line == line] if path in view else []
