"""Write bodies for missing functions: stubs get them in place, removed functions and classes are defined again."""

import ast
import builtins
import textwrap
from collections.abc import Callable, Sequence

from gametape.record.loaded_task import LoadedTask
from gametape.syntax.definitions import FunctionNode, functions, without_docstring
from gametape.syntax.names import bound_names
from gametape.syntax.source import parse
from gametape.verify.missing_functions import (
    KEPT_DECORATORS,
    MissingFunction,
    bare_signature,
    decorators,
    parse_file,
)

StubBody = str | Callable[[MissingFunction], str]


def is_invalid_body(item: MissingFunction, body: StubBody) -> bool:
    """Whether Python refuses this body in that place."""
    return item.returns_nothing and "return" in _text(item, body)


def render_body(item: MissingFunction, body: StubBody) -> str:
    return "pass" if is_invalid_body(item, body) else textwrap.dedent(_text(item, body)).strip() or "pass"


def _text(item: MissingFunction, body: StubBody) -> str:
    return body(item) if callable(body) else body


def fill_task(
    loaded_task: LoadedTask, missing: Sequence[MissingFunction], body: StubBody, read: Callable[[str], str]
) -> dict[str, str]:
    """The files of a task with every missing function written, and everything importable that tests import.

    `read` gives the text of a file as it is now.
    """
    reference = loaded_task.reference
    paths = dict.fromkeys([*(item.path for item in missing), *_files_with_missing_names(loaded_task)])
    return {
        path: fill_stubs(
            read(path),
            [item for item in missing if item.path == path],
            body,
            parse_file(reference, path) if reference else None,
        )
        for path in paths
    }


def _files_with_missing_names(loaded_task: LoadedTask) -> list[str]:
    """Source files that lack more than functions against the reference, such as a re-export."""
    if loaded_task.reference is None:
        return []
    sources = loaded_task.reference.under(loaded_task.task.source_paths).files
    return [
        path
        for path, content in sources.items()
        if path.endswith(".py") and loaded_task.start.files.get(path) != content
    ]


def fill_stubs(text: str, items: list[MissingFunction], body: StubBody, reference: ast.Module | None) -> str:
    """The text of one file with all of its missing functions written.

    Names that the reference's top level binds and this file does not are bound too, so that every import of a test
    succeeds: re-exports as the reference has them, other values to None.
    """
    stubbed = [item for item in items if item.is_stubbed]
    for item in sorted(stubbed, key=lambda item: -_line(text, item)):
        text = replace_body(text, item, render_body(item, body))
    absent = [item for item in items if not item.is_stubbed]
    classes = {node.name: node for node in parse(text).body if isinstance(node, ast.ClassDef)}
    for owner in sorted(
        {item.class_name for item in absent if item.class_name in classes}, key=lambda name: -classes[name].lineno
    ):
        methods = [_define(item, body) for item in absent if item.class_name == owner]
        text = _append_to_class(text, classes[owner], "\n\n".join(methods))
    parts = [_define(item, body) for item in absent if item.class_name is None]
    for owner in dict.fromkeys(
        item.class_name for item in absent if item.class_name and item.class_name not in classes
    ):
        body_of_reference = reference.body if reference else []
        node = next((statement for statement in body_of_reference if getattr(statement, "name", None) == owner), None)
        parts.append(_define_class(owner, node, [item for item in absent if item.class_name == owner], body))
    text = "\n\n\n".join([text.rstrip("\n"), *parts]).lstrip("\n") + "\n"
    return text + _other_names(text, reference) if reference else text


def _line(text: str, item: MissingFunction) -> int:
    return functions(parse(text))[item.class_name, item.name].lineno


def replace_body(text: str, item: MissingFunction, body: str) -> str:
    """The text of a file that has the function, with this body in place of its own."""
    node = functions(parse(text))[item.class_name, item.name]
    lines = text.splitlines()
    rest = without_docstring(node.body)
    first = rest[0] if rest else None
    indent = " " * (node.col_offset + 4)
    if node.body[0].lineno == _header_end(lines, node):  # all on one line
        header = lines[node.body[0].lineno - 1].encode()[: node.body[0].col_offset].decode().rstrip()
        head = [*lines[: node.body[0].lineno - 1], header]
    elif first is None:
        head = lines[: node.body[-1].end_lineno]
    else:
        head = lines[: first.lineno - 1]
    end = node.end_lineno or node.lineno
    return "\n".join([*head, textwrap.indent(body, indent), *lines[end:]]) + "\n"


def _header_end(lines: list[str], node: FunctionNode) -> int:
    """The line the colon is on, if the body starts on it; else 0."""
    first = node.body[0]
    return first.lineno if lines[first.lineno - 1].encode()[: first.col_offset].strip() else 0


def _define(item: MissingFunction, body: StubBody) -> str:
    word = "async def" if isinstance(item.node, ast.AsyncFunctionDef) else "def"
    names = [name for name in sorted(decorators(item.node)) if name in KEPT_DECORATORS or name.endswith(".setter")]
    header = f"{word} {item.name}({bare_signature(item.node)}):"
    return "\n".join([*(f"@{name}" for name in names), header, textwrap.indent(render_body(item, body), "    ")])


def _define_class(name: str, node: ast.stmt | None, items: list[MissingFunction], body: StubBody) -> str:
    bases = [ast.unparse(base) for base in node.bases] if isinstance(node, ast.ClassDef) else []
    known = [base for base in bases if hasattr(builtins, base)]
    methods = [_define(item, body) for item in items]
    if not known and all(item.name != "__init__" for item in items):
        methods.insert(0, "def __init__(self, *args, **kwargs):\n    pass")
    return f"class {name}({', '.join(known)}):\n" + textwrap.indent("\n\n".join(methods) or "pass", "    ")


def _append_to_class(text: str, node: ast.ClassDef, members: str) -> str:
    lines = text.splitlines()
    end = node.end_lineno or node.lineno
    return "\n".join([*lines[:end], "", textwrap.indent(members, " " * (node.col_offset + 4)), *lines[end:]]) + "\n"


def _other_names(text: str, reference: ast.Module) -> str:
    """Imports that the reference has beside those here, then what is still unbound."""
    bound = set(bound_names(parse(text)))
    added = []
    for node in reference.body:
        if getattr(node, "module", "") == "__future__":
            continue
        if isinstance(node, ast.Import | ast.ImportFrom) and bound_names(ast.Module([node], [])) - bound:
            added.append(ast.unparse(node))
            bound |= bound_names(ast.Module([node], []))
    classes = [node for node in reference.body if isinstance(node, ast.ClassDef) and node.name not in bound]
    added += ["\n\n" + _define_class(node.name, node, [], "pass") for node in classes]
    bound |= {node.name for node in classes}
    added += [f"{name} = None" for name in sorted(bound_names(reference) - bound) if not name.startswith("__")]
    return "\n" + "\n".join(added) + "\n" if added else ""
