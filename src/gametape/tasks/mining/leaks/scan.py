"""Find deleted code in what the agent can read, because an agent could copy it.

A whole copy or a long run of the same statements is a leak. Similar methods are not: a person would read them too.
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
"""A partial copy has so many statements in a row with so many nodes, and is this share of the body or has twice as many
statements. Similar methods of one class stay below that."""
TEXT_COPY_SHARE, MIN_TEXT_COPY_NODES = 0.6, 40
"""In text, this share of a body's larger statements, in their order, is a copy."""
MIN_WHOLE_COPY_NODES = 40
"""A whole body of this size inside a longer function is a copy. In text, smaller ones are too."""


@dataclass(frozen=True)
class CodeLeak:
    """A location where the body of a deleted function can be read."""

    function: Function
    where: str
    """A path in the tree, or an absolute one outside; `!` leads into an archive."""
    line: int
    kind: Literal["copy", "part", "text", "outside"]
    """`copy`: another function has the same body. `part`: other code contains much of it. `text`: it is in
    documentation, a comment or a string. `outside`: it is installed on the machine."""
    copy: Function | None = None
    """The function with the same body, as the original has it: it could be deleted too."""


class DeletedBody(NamedTuple):
    """A deleted body with its search keys."""

    fingerprint: str | None
    statements: tuple[NormalizedStatement, ...]
    keys: frozenset[int | str]

    @property
    def size(self) -> int:
        return sum(statement.size for statement in self.statements)


def find_leaks(
    deleted: Mapping[Function, str], view: SourceTree, outside: OutsideIndex = NOTHING_OUTSIDE
) -> list[CodeLeak]:
    """The leaks of deleted functions, given with the original text of their files, in the agent's starting tree and
    outside it, sorted by function and location."""
    bodies = {function: read_body(function, source) for function, source in deleted.items()}
    wanted = frozenset[int | str]().union(*(body.keys for body in bodies.values()))
    originals = {function.path: source for function, source in deleted.items()}
    leaks: set[CodeLeak] = set()
    for path, pieces in (indexed for file in view.files.items() for indexed in index_file(*file)):
        for leak in _in_file(bodies, wanted, path, pieces):
            copied = leak.kind == "copy"
            leaks.add(_with_copy(leak, bodies[leak.function], view, originals) if copied else leak)
    for function, body in bodies.items():
        locations = outside.locations.get(body.fingerprint or "", ())
        leaks.update(CodeLeak(function, path, line, "outside") for path, line in locations)
    return sorted(leaks, key=lambda leak: (leak.function, leak.where, leak.line, leak.kind))


@functools.lru_cache(maxsize=10_000)
def read_body(function: Function, source: str) -> DeletedBody:
    """The body of a function in the text of its file; empty if the function is not there."""
    node = functions_by_line(source).get(function.line)
    if node is None:
        return DeletedBody(None, (), frozenset())
    digest, statements = fingerprint(node), tuple(normalized_statements(node.body))
    keys: set[int | str] = {statement.key for statement in statements if statement.size >= MIN_INDEXED_NODES}
    return DeletedBody(digest, statements, frozenset(keys | {digest} if digest else keys))


def _in_file(
    bodies: Mapping[Function, DeletedBody], wanted: frozenset[int | str], path: str, pieces: FilePieces
) -> Iterator[CodeLeak]:
    for before, piece in pieces:
        if piece.keys.isdisjoint(wanted):
            continue
        for function, body in bodies.items():
            if not piece.keys.isdisjoint(body.keys):
                for unit in piece.units:
                    if match := match_leak(body, unit):
                        yield CodeLeak(function, path, before + match[1], match[0])


def match_leak(body: DeletedBody, unit: CodeUnit) -> tuple[Literal["copy", "part", "text"], int] | None:
    """How a unit leaks a body and in which line; None if it does not."""
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
    """The largest common run of statements: how many, how many nodes, and its line in the unit."""
    positions: dict[int, list[int]] = {}
    for position, statement in enumerate(unit):
        positions.setdefault(statement.key, []).append(position)
    best = (0, 0, 0)
    for start, statement in enumerate(body):
        for position in positions.get(statement.key, ()):
            if start and position and body[start - 1].key == unit[position - 1].key:
                continue  # the middle of a run that was seen
            count = size = 0
            for mine, other in zip(body[start:], unit[position:], strict=False):
                if mine.key != other.key:
                    break
                count, size = count + 1, size + mine.size
            if size > best[1]:
                best = (count, size, unit[position].line)
    return best


def _mostly_there(body: Sequence[NormalizedStatement], unit: Sequence[NormalizedStatement]) -> bool:
    """Whether most of the larger statements of a body are in a unit, in their order."""
    mine = [statement for statement in body if statement.size >= MIN_INDEXED_NODES]
    whole = sum(statement.size for statement in mine)
    if whole < MIN_TEXT_COPY_NODES:
        return False
    keys = {statement.key for statement in mine}
    others = [statement.key for statement in unit if statement.key in keys]
    row = [0] * (1 + len(others))
    for statement in mine:
        last = row
        row = [0]
        for index, key in enumerate(others):
            row.append(last[index] + statement.size if key == statement.key else max(last[index + 1], row[index]))
    return row[-1] >= TEXT_COPY_SHARE * whole


def _with_copy(leak: CodeLeak, body: DeletedBody, view: SourceTree, originals: Mapping[str, str]) -> CodeLeak:
    """Add the function with the same body, as the original has it: the deletion may have moved its lines."""
    text = originals.get(leak.where) or (view.text(leak.where) if leak.where in view else "")
    names = {function.qualname for function in _at(leak.where, view, leak.line)}
    same = (
        function
        for function in functions_in(leak.where, text)
        if function != leak.function and function.qualname in names
    )
    return replace(
        leak,
        copy=next((function for function in same if read_body(function, text).fingerprint == body.fingerprint), None),
    )


def _at(path: str, view: SourceTree, line: int) -> list[Function]:
    return (
        [function for function in functions_in(path, view.text(path)) if function.line == line] if path in view else []
    )
