"""Remove whole functions from a tree, with their imports and exports, if everything can still be imported.

A use of a function's name while a module is imported blocks its removal: a decorator, a default, a base class, an
alias. Uses inside other functions do not: they fail when called, as intended.
"""

import builtins
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from gametape.record.source_tree import SourceTree, is_under
from gametape.tasks.mining.functions import Function
from gametape.tasks.mining.removal.module_names import MODULE_SCOPE, ImportedName, ModuleNames, read_module_names
from gametape.tasks.mining.removal.python_source import ByteEdit, read_source
from gametape.tasks.mining.removal.source_cuts import SourceCuts

_BUILT_IN = frozenset(dir(builtins))
ModuleName = tuple[str, str]
"""A file and a name at its module level."""


@dataclass(frozen=True)
class RemovalEdits:
    edits: dict[str, list[ByteEdit]]
    removed: frozenset[Function]


def remove_functions(tree: SourceTree, functions: Collection[Function], test_paths: Collection[str]) -> RemovalEdits:
    """The edits that remove these functions. Functions that cannot be removed are not in `removed`."""
    code = _Code(tree, test_paths)
    groups = [*_groups(code, functions)]
    while True:
        going = {(group.path, line) for group in groups for line in group.lines}
        staying = [group for group in groups if code.is_missed(group, going)]
        if not staying:
            break
        groups = [group for group in groups if group not in staying]
    edits: dict[str, list[ByteEdit]] = {}
    for path, cut in code.cuts(groups).items():
        edits[path] = cut.edits()
    return RemovalEdits(edits, frozenset(function for group in groups for function in group.functions))


@dataclass(frozen=True)
class _Group:
    """Definitions of one name in one scope. All or none are removed, so that no half of a property stays."""

    path: str
    scope: int
    name: str
    lines: tuple[int, ...]
    functions: tuple[Function, ...]


def _groups(code: "_Code", functions: Collection[Function]) -> Iterator[_Group]:
    by_name: dict[tuple[str, int, str], list[Function]] = defaultdict(list)
    for function in sorted(functions):
        definition = code.names[function.path].definitions.get(function.line)
        if definition is not None:
            by_name[function.path, definition.scope, definition.name].append(function)
    for (path, scope, name), members in by_name.items():
        names = code.names[path]
        lines = {function.line for function in members}
        others = [line for line in names.bindings.get((scope, name), ()) if line not in lines]
        if all(line in names.definitions and names.definitions[line].overload for line in others):
            yield _Group(path, scope, name, tuple(sorted({*lines, *others})), tuple(members))


class _Code:
    """The Python files of a tree, and the imports between them."""

    def __init__(self, tree: SourceTree, test_paths: Collection[str]) -> None:
        self.tree = tree
        self.names: dict[str, ModuleNames] = {
            path: read_module_names(tree.files[path]) for path in tree if path.endswith(".py")
        }
        self.sources = [path for path in self.names if not _is_test(path, test_paths)]
        self.pinned = [path for path in self.names if path.rpartition("/")[2] == "conftest.py"]
        self.demanded = {name for path in self.sources for name in self.names[path].required_methods}
        self._modules = {_module(path): path for path in self.names}
        packages = {module for module, path in self._modules.items() if path.endswith("__init__.py")}
        self._roots = {module[:-1] for module in self._modules} - packages | {()}
        self._importers: dict[ModuleName, list[tuple[str, ImportedName]]] = defaultdict(list)
        self._starred: dict[str, list[str]] = defaultdict(list)
        for path, names in self.names.items():
            for imported in names.imports:
                for origin in self.resolved(path, imported):
                    if imported.name == "*":
                        self._starred[origin].append(path)
                    elif imported.name is not None:
                        self._importers[origin, imported.name].append((path, imported))

    def resolved(self, path: str, imported: ImportedName) -> list[str]:
        """The files of the tree that an import may refer to."""
        if imported.level:
            here = tuple(path.split("/")[:-1])
            base = here[: len(here) - imported.level + 1]
            files = [self._modules.get(base + imported.module)]
        else:
            files = [self._modules.get(root + imported.module) for root in self._roots] if imported.module else []
        return [path for path in files if path is not None]

    def exposed(self, group: _Group) -> Iterator[tuple[ModuleName, ImportedName | None]]:
        """The modules in which a function's name is bound: its own, and those that import it."""
        waiting: list[tuple[ModuleName, ImportedName | None]] = (
            [((group.path, group.name), None)] if group.scope == MODULE_SCOPE else []
        )
        seen: set[tuple[ModuleName, int]] = set()
        while waiting:
            (path, name), by = waiting.pop()
            key = ((path, name), by.statement.span[0] if by else -1)
            if key in seen:
                continue
            seen.add(key)
            yield (path, name), by
            if by is not None and by.scope != MODULE_SCOPE:
                continue
            waiting += (
                ((other, imported.local_name), imported) for other, imported in self._importers.get((path, name), ())
            )
            waiting += (((other, name), None) for other in self._starred.get(path, ()) if not name.startswith("_"))

    def is_missed(self, group: _Group, going: set[tuple[str, int]]) -> bool:
        """Whether a module could not be imported, or a class not be instantiated, without it."""
        if group.scope != MODULE_SCOPE and group.name in self.demanded:
            return True
        if self._is_read(group.path, group.name, group.scope, going) or self._is_attribute(group.name, going):
            return True
        arrivals = [*self.exposed(group)]
        bringing = {
            (path, imported.statement.span[0], imported.index)
            for (path, _), imported in arrivals
            if imported is not None
        }
        return any(self._is_missed_at(where, by, bringing, going) for where, by in arrivals)

    def _is_missed_at(
        self,
        where: ModuleName,
        by: ImportedName | None,
        bringing: set[tuple[str, int, int]],
        going: set[tuple[str, int]],
    ) -> bool:
        path, name = where
        if path not in self.sources:
            return by is not None and by.scope is not None and path in self.pinned
        names = self.names[path]
        if any(imported.name == name and imported.display is None for imported in names.exports):
            return True
        if by is None:
            return self._is_read(path, name, MODULE_SCOPE, going)
        if by.scope is None:
            return False
        own = [imported for imported in names.imports if imported.local_name == name and imported.scope == by.scope]
        others = len(names.bindings.get((by.scope, name), ())) - len(own)
        stray = [imported for imported in own if (path, imported.statement.span[0], imported.index) not in bringing]
        return bool(others or stray) or self._is_read(path, name, by.scope, going)

    def _is_read(self, path: str, name: str, scope: int, going: set[tuple[str, int]]) -> bool:
        return any(
            (path, owner) not in going and scope in (MODULE_SCOPE, where)
            for where, owner in self.names[path].loads.get(name, ())
        )

    def _is_attribute(self, name: str, going: set[tuple[str, int]]) -> bool:
        return any(
            (path, owner) not in going and not self._is_foreign(path, root)
            for path in [*self.sources, *self.pinned]
            for root, owner in self.names[path].attributes.get(name, ())
        )

    def _is_foreign(self, path: str, root: str | None) -> bool:
        """Whether an attribute belongs to a module outside the tree, as in `re.compile`."""
        if root is None:
            return True
        names = self.names[path]
        if (MODULE_SCOPE, root) not in names.bindings:
            return root in _BUILT_IN
        brought = [
            imported for imported in names.imports if imported.local_name == root and imported.scope == MODULE_SCOPE
        ]
        every = len(brought) == len(names.bindings[MODULE_SCOPE, root])
        return every and not any(self._is_inside(path, imported) for imported in brought)

    def _is_inside(self, path: str, imported: ImportedName) -> bool:
        return bool(
            imported.level
            or self.resolved(path, imported)
            or any(root + imported.module[:1] in self._modules for root in self._roots)
        )

    def cuts(self, groups: list[_Group]) -> dict[str, SourceCuts]:
        cuts: dict[str, SourceCuts] = {}

        def cut(path: str) -> SourceCuts:
            return cuts.setdefault(path, SourceCuts(read_source(self.tree.files[path]), self.names[path]))

        for group in groups:
            for line in group.lines:
                cut(group.path).cut_definition(line)
            for (path, name), by in self.exposed(group):
                if path in self.sources:
                    for export in self.names[path].exports:
                        if export.name == name:
                            cut(path).cut_export(export)
                    if by is not None:
                        cut(path).cut_import(by)
        for path in {group.path for group in groups}:
            for imported in self._idle(path, cuts[path]):
                cuts[path].cut_import(imported)
        return cuts

    def _idle(self, path: str, cut: SourceCuts) -> Iterator[ImportedName]:
        """Imports that only the cut code used. An import without any use is there for its effects and stays."""
        names = self.names[path]
        exported = {export.name for export in names.exports}
        if path.endswith("__init__.py") or (path in self._starred and not names.has_dunder_all):
            return
        for imported in names.imports:
            used = names.import_uses.get(imported.local_name, ())
            if (
                imported.unconditional
                and imported.scope == MODULE_SCOPE
                and not imported.redundant
                and imported.module != ("__future__",)
                and imported.local_name not in exported
                and len(names.bindings[MODULE_SCOPE, imported.local_name]) == 1
                and not self._importers.get((path, imported.local_name))
                and used
                and all(cut.covers(offset) for offset in used)
            ):
                yield imported


def _module(path: str) -> tuple[str, ...]:
    parts = path.removesuffix(".py").split("/")
    return tuple(parts[:-1] if parts[-1] == "__init__" else parts)


def _is_test(path: str, test_paths: Collection[str]) -> bool:
    """Whether a file is under one of the test paths or has a name that pytest collects."""
    *directories, file = path.split("/")
    return (
        is_under(path, [*test_paths])
        or file.startswith("test_")
        or file.endswith("_test.py")
        or file == "conftest.py"
        or not {"test", "tests"}.isdisjoint(directories)
    )
