"""Whether a module still offers its declared public API, read from its syntax tree.

A name counts as offered if the module binds it: by definition, assignment or import, in a branch too. Parameters are
compared where a definition is found, following imports within the sources and base classes within a module; a name
bound to something that the sources do not show (the result of a call, another distribution's function) is accepted: the
tests check it. Annotations do not matter; names, kinds and order of parameters and whether they have a
default do.
"""

import ast
import builtins
from collections.abc import Iterator

from gametape.core.task import Task
from gametape.record.source_tree import SourceTree
from gametape.syntax.source import parse
from gametape.verify.layers.imports import absolute_module, module_name
from gametape.verify.static_analysis.python_source import Function, parse_source

_DEEPEST = 20

ApiDefinition = Function | ast.ClassDef | None
"""None: bound to something that the sources do not show."""

Lookup = tuple[bool, ApiDefinition]
"""Whether a name is bound, and to what."""


def missing_from_api(task: Task, sources: SourceTree, module: str, names: list[str]) -> Iterator[tuple[str, int, str]]:
    """File, line and message for each name that the module does not offer as declared."""
    modules = {name: path for path in sources if (name := module_name(path, task.import_roots))}
    path = modules.get(module)
    tree = parse_source(sources.files[path]) if path else None
    if path is None or tree is None:
        problem = "cannot be parsed" if path else "is not there"
        yield path or module.replace(".", "/"), 1, f"{module} must offer {', '.join(names)}, but it {problem}"
        return
    index = _NameIndex(sources, modules)
    for name in names:
        dotted, has_parameters, parameters = name.partition("(")
        offered, definition = index.find(module, dotted.strip().split("."))
        line = definition.lineno if definition else 1
        if not offered:
            yield path, 1, f"{module} must offer {name}"
        elif has_parameters and definition is not None:
            wanted = _parse_parameters("(" + parameters)
            actual = _callable(definition)
            if wanted is not None and actual is not None and not _agree(wanted, actual, "." in dotted, definition):
                yield path, line, f"{module} must offer {name}, but it is {dotted}({_described(actual)})"


class _NameIndex:
    """Looks names up across the modules of the sources."""

    def __init__(self, sources: SourceTree, modules: dict[str, str]) -> None:
        self._sources = sources
        self._modules = modules
        self._visited: set[tuple[str, ...]] = set()

    def find(self, module: str, names: list[str]) -> Lookup:
        """Whether the dotted name is bound there, and its definition where it can be read."""
        self._visited.clear()
        return self._look_up(module, names)

    def _look_up(self, module: str, names: list[str]) -> Lookup:
        path = self._modules.get(module)
        tree = parse_source(self._sources.files[path]) if path else None
        if path is None or tree is None or len(names) > _DEEPEST:
            return True, None
        if (module, *names) in self._visited:  # imports or bases in a circle
            return False, None
        self._visited.add((module, *names))
        return self._bound_in(tree, module, path, names)

    def _bound_in(self, tree: ast.Module, module: str, path: str, names: list[str]) -> Lookup:
        package = module if path.endswith("__init__.py") else module.rpartition(".")[0]
        nodes = list(_bindings(tree))[::-1]
        for node in nodes:  # a definition wins over a branch that binds the name to something else
            if isinstance(node, Function | ast.ClassDef) and node.name == names[0]:
                return self._inside(module, node, names[1:])
        for node in nodes:
            if isinstance(node, ast.ImportFrom):
                lookup = self._through(node, package, names)
                if lookup is not None:
                    return lookup
            elif names[0] in _bound(node):
                return True, None
        is_submodule = f"{module}.{names[0]}" in self._modules and path.endswith("__init__.py")
        has_getattr = any(isinstance(node, Function) and node.name == "__getattr__" for node in tree.body)
        return is_submodule or has_getattr, None

    def _through(self, node: ast.ImportFrom, package: str, names: list[str]) -> Lookup | None:
        source = absolute_module(package, node.level, node.module) or ""
        for alias in node.names:
            if (alias.asname or alias.name) == names[0]:
                if f"{source}.{alias.name}" in self._modules:
                    return self._look_up(f"{source}.{alias.name}", names[1:]) if names[1:] else (True, None)
                return self._look_up(source, [alias.name, *names[1:]])
            if alias.name == "*" and source in self._modules and not names[0].startswith("_"):
                lookup = self._look_up(source, names)
                if lookup[0]:
                    return lookup
        return None

    def _inside(self, module: str, node: Function | ast.ClassDef, names: list[str]) -> Lookup:
        if not names:
            return True, node
        if not isinstance(node, ast.ClassDef):
            return False, None
        for inner in reversed(list(_bindings(node))):
            if isinstance(inner, Function | ast.ClassDef) and inner.name == names[0]:
                return self._inside(module, inner, names[1:])
            if names[0] in _bound(inner):
                return True, None
        return self._inherited(module, node, names)

    def _inherited(self, module: str, node: ast.ClassDef, names: list[str]) -> Lookup:
        for base in node.bases or [ast.Name("object")]:
            if not isinstance(base, ast.Name):
                return True, None
            built_in = getattr(builtins, base.id, None)
            lookup = self._look_up(module, [base.id, *names])
            if lookup[0] or hasattr(built_in, names[0]):
                return lookup if lookup[0] else (True, None)
        return False, None


def _bindings(scope: ast.Module | ast.ClassDef) -> Iterator[ast.stmt]:
    """The statements of a scope, those in its branches too."""
    todo: list[ast.stmt] = list(reversed(scope.body))
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, ast.If | ast.Try | ast.TryStar | ast.With | ast.For | ast.While):
            blocks = [node.body, getattr(node, "orelse", []), getattr(node, "finalbody", [])]
            blocks += [handler.body for handler in getattr(node, "handlers", [])]
            todo += [inner for block in reversed(blocks) for inner in reversed(block)]


def _bound(node: ast.stmt) -> set[str]:
    """Names that a statement binds by import or assignment."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.For | ast.With):
        return {name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
    return set()


def _callable(definition: Function | ast.ClassDef) -> ast.arguments | None:
    if isinstance(definition, Function):
        return definition.args
    constructors = [node for node in definition.body if isinstance(node, Function) and node.name == "__init__"]
    return constructors[-1].args if constructors else None


def _parse_parameters(text: str) -> ast.arguments | None:
    try:
        node = parse(f"def _{text}: ...").body[0]
    except SyntaxError:
        return None
    return node.args if isinstance(node, Function) else None


def _agree(wanted: ast.arguments, actual: ast.arguments, is_method: bool, definition: ApiDefinition) -> bool:
    """A task may write the parameters of a method with `self` or without."""
    bound = isinstance(definition, ast.ClassDef) or is_method
    return _shape(wanted) == _shape(actual) or (bound and _shape(wanted) == _shape(actual)[1:])


def _shape(arguments: ast.arguments) -> list[tuple[str, str, bool]]:
    positional = [("/", arg.arg) for arg in arguments.posonlyargs] + [("", arg.arg) for arg in arguments.args]
    plain = len(positional) - len(arguments.defaults)
    shape = [(kind, name, index >= plain) for index, (kind, name) in enumerate(positional)]
    shape += [("*", arguments.vararg.arg, False)] if arguments.vararg else []
    keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    shape += sorted(("=", arg.arg, default is not None) for arg, default in keyword)
    return shape + ([("**", arguments.kwarg.arg, False)] if arguments.kwarg else [])


def _described(arguments: ast.arguments) -> str:
    marks = {"*": "*", "**": "**"}
    parts = (marks.get(kind, "") + name + ("=..." if optional else "") for kind, name, optional in _shape(arguments))
    return ", ".join(parts)
