"""Twins of inherited tests: the changed method is written into the class that inherits it, and into no other."""

import ast
import builtins
from collections.abc import Sequence
from dataclasses import dataclass

from gametape.verify.twins.edit import Edit, Text, Twin, apply
from gametape.verify.twins.scope import Function, bound, imported, names_in

Parsed = tuple[Text, ast.Module]


@dataclass(frozen=True)
class Definition:
    """Where a method is written."""

    file: str
    path: str
    owner: ast.ClassDef
    node: Function


def overriding(
    parsed: Parsed,
    heir: ast.ClassDef,
    function: str,
    there: Parsed,
    defined: Definition,
    made: Sequence[Twin],
    same_file: bool,
) -> list[Twin]:
    """Each twin of a method as an override at the end of the class that inherits it."""
    imports = [] if same_file else _imports(parsed[1], there[1], defined.node)
    node = defined.node
    if imports is None or heir.body[0].lineno == heir.lineno or heir.body[0].col_offset != node.col_offset:
        return []
    if same_file and heir.lineno < defined.owner.lineno:
        return []
    text, source = parsed[0], there[0]
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    start, end = source.rows(first, node.end_lineno or first)
    _, place = text.rows(1, heir.end_lineno or heir.lineno)
    blank = "\n" if text.source[:place].endswith("\n") else "\n\n"
    body = source.start(node.body[0])
    twins = []
    for twin in made:
        if any(edit.start < start or edit.end > end for edit in twin.edits) or not source.opens_line(node.body[0]):
            continue
        column = " " * node.body[0].col_offset
        added = [Edit(body, body, "".join(f"{line}\n{column}" for line in imports))] if imports else []
        moved = [Edit(e.start - start, e.end - start, e.text) for e in (*added, *twin.edits)]
        new = apply(source.source[start:end], [Twin(function, twin.kind, None, tuple(moved))])
        twins.append(Twin(function, twin.kind, None, (Edit(place, place, blank + new.rstrip("\n") + "\n"),)))
    return twins


def _imports(here: ast.Module, there: ast.Module, node: Function) -> list[str] | None:
    """The imports that the method needs besides those of the file it goes to; None if it needs more than imports."""
    known, given = _imported(here), _imported(there)
    builtin = set(vars(builtins)) - bound(there)
    free = set(names_in(node)) - bound(node) - builtin
    lines = []
    for name in sorted(free):
        if name not in given or given[name][0] is None:
            return None
        if known.get(name) != given[name]:
            module, original = given[name]
            plain = f"import {original} as {name}" if original != name else f"import {name}"
            lines.append(f"from {module} {plain}" if module else plain)
    return lines


def _imported(tree: ast.Module) -> dict[str, tuple[str | None, str]]:
    """The names a file imports: the module each is from, None for a relative one, and its name there."""
    found: dict[str, tuple[str | None, str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update({local: ("", origin) for local, origin in imported(node).items()})
        elif isinstance(node, ast.ImportFrom):
            module = None if node.level else node.module
            found.update({alias.asname or alias.name: (module, alias.name) for alias in node.names})
    return found
