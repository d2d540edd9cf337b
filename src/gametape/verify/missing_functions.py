"""The functions that a task asks for: missing from the starting tree, or stubbed there.

Trivial programs and hacks use only their signatures: they must not carry the honest solution.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree, is_under
from gametape.syntax.constants import is_literal
from gametape.syntax.definitions import FunctionNode, functions, is_stub, without_docstring
from gametape.syntax.source import parse, parse_or_none

KEPT_DECORATORS = {"property", "staticmethod", "classmethod", "abstractmethod"}


@dataclass(frozen=True)
class MissingFunction:
    """A function that the reference has and the starting tree lacks or holds otherwise."""

    path: str
    class_name: str | None
    """The class it is a method of."""
    name: str
    node: FunctionNode
    """The definition to take the signature from."""
    is_stubbed: bool
    """Whether the starting tree has a function of that name at that place, stubbed or different."""

    @property
    def qualname(self) -> str:
        return f"{self.class_name}.{self.name}" if self.class_name else self.name

    @property
    def returns_nothing(self) -> bool:
        """Whether Python itself refuses a value from it."""
        return self.name in ("__init__", "__init_subclass__")

    @property
    def parameters(self) -> list[str]:
        """Names that can be given by position, without the instance or class."""
        names = [argument.arg for argument in (*self.node.args.posonlyargs, *self.node.args.args)]
        return names[1:] if self.class_name and "staticmethod" not in decorators(self.node) else names


def decorators(node: FunctionNode) -> set[str]:
    return {ast.unparse(decorator) for decorator in node.decorator_list}


def parse_file(tree: SourceTree, path: str) -> ast.Module | None:
    return parse_or_none(tree.files.get(path))


def find_missing_functions(loaded_task: LoadedTask) -> list[MissingFunction]:
    """What has to be written; by comparison with the reference where there is one, else by the look of the stubs."""
    sources = loaded_task.task.source_paths
    if loaded_task.reference is None:
        return [*_stubs(loaded_task.start.under(sources))]
    missing = []
    for path in sorted(loaded_task.reference.under(sources).files):
        if not path.endswith(".py") or (wanted := parse_file(loaded_task.reference, path)) is None:
            continue
        there = functions(parse_file(loaded_task.start, path) or ast.Module([], []))
        for (owner, name), node in functions(wanted).items():
            old = there.get((owner, name))
            if old is None or _substance(old) != _substance(node):
                missing.append(MissingFunction(path, owner, name, node, old is not None))
    return missing


def _stubs(start: SourceTree) -> Iterator[MissingFunction]:
    for path in sorted(start.files):
        if path.endswith(".py") and (module := parse_file(start, path)):
            for (owner, name), node in functions(module).items():
                if is_stub(node):
                    yield MissingFunction(path, owner, name, node, True)


def _substance(node: FunctionNode) -> str:
    return "\n".join(ast.dump(statement) for statement in without_docstring(node.body))


def module_files(loaded_task: LoadedTask, tree: SourceTree, module: str) -> list[str]:
    """The files of the sources that importing this module runs, packages first."""
    paths = []
    parts = module.split(".")
    for root in loaded_task.task.import_roots:
        base = "" if root in (".", "") else root.strip("/") + "/"
        for depth in range(1, len(parts) + 1):
            stem = base + "/".join(parts[:depth])
            paths += [path for path in (f"{stem}/__init__.py", f"{stem}.py") if path in tree]
    return [path for path in dict.fromkeys(paths) if is_under(path, loaded_task.task.source_paths)]


def bare_signature(node: FunctionNode) -> str:
    """The parameters without annotations; a default that is not a literal becomes None."""
    bare: ast.arguments = parse(f"def f({ast.unparse(node.args)}): pass").body[0].args  # type: ignore[attr-defined]
    for argument in (*bare.posonlyargs, *bare.args, *bare.kwonlyargs, bare.vararg, bare.kwarg):
        if argument is not None:
            argument.annotation = None
    bare.defaults = [_literal(default) for default in bare.defaults]
    bare.kw_defaults = [default and _literal(default) for default in bare.kw_defaults]
    return ast.unparse(bare)


def _literal(default: ast.expr) -> ast.expr:
    return default if is_literal(default) else ast.Constant(None)
