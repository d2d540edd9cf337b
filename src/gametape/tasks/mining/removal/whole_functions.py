"""Take functions out of a tree whole, with everything that speaks of them, as far as it can still be imported after.

What stands in the way of a function's removal is a use of its name while a module is imported: a decorator, a default,
a base class, an alias. Uses inside other functions do not; they fail when called, which is what is wanted.
"""

import builtins
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from gametape.record.source_tree import SourceTree, is_under
from gametape.tasks.mining.functions import Function
from gametape.tasks.mining.removal.module_names import (
    MODULE_SCOPE,
    ImportedName,
    ModuleNames,
    read_module_names,
)
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
    """How to remove these functions; those that cannot go are not among the removed."""
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
    """Definitions of one name in one scope: they go together or not at all, so no half of a property stays."""

    path: str
    scope: int
    name: str
    lines: tuple[int, ...]
    functions: tuple[Function, ...]


def _groups(code: "_Code", functions: Collection[Function]) -> Iterator[_Group]:
    chosen: dict[tuple[str, int, str], list[Function]] = defaultdict(list)
    for function in sorted(functions):
        definition = code.names[function.path].definitions.get(function.line)
        if definition is not None:
            chosen[function.path, definition.scope, definition.name].append(function)
    for (path, scope, name), found in chosen.items():
        names = code.names[path]
        lines = {function.line for function in found}
        others = [line for line in names.bindings.get((scope, name), ()) if line not in lines]
        if all(line in names.definitions and names.definitions[line].overload for line in others):
            yield _Group(path, scope, name, tuple(sorted({*lines, *others})), tuple(found))


class _Code:
    """The Python files of a tree, and who imports what from whom."""

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
            for one in names.imports:
                for origin in self.resolved(path, one):
                    if one.name == "*":
                        self._starred[origin].append(path)
                    elif one.name is not None:
                        self._importers[origin, one.name].append((path, one))

    def resolved(self, path: str, one: ImportedName) -> list[str]:
        """The files of the tree that an import may mean."""
        if one.level:
            here = tuple(path.split("/")[:-1])
            base = here[: len(here) - one.level + 1]
            found = [self._modules.get(base + one.module)]
        else:
            found = [self._modules.get(root + one.module) for root in self._roots] if one.module else []
        return [path for path in found if path is not None]

    def exposed(self, group: _Group) -> Iterator[tuple[ModuleName, ImportedName | None]]:
        """Where a function's name arrives: in its own module, and with the imports that bring it elsewhere."""
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
            waiting += (((other, one.local_name), one) for other, one in self._importers.get((path, name), ()))
            waiting += (((other, name), None) for other in self._starred.get(path, ()) if not name.startswith("_"))

    def is_missed(self, group: _Group, going: set[tuple[str, int]]) -> bool:
        """Whether something could not be imported, or no object be made, without it."""
        if group.scope != MODULE_SCOPE and group.name in self.demanded:
            return True
        if self._is_read(group.path, group.name, group.scope, going) or self._is_attribute(group.name, going):
            return True
        arrivals = [*self.exposed(group)]
        bringing = {(path, one.statement.span[0], one.index) for (path, _), one in arrivals if one is not None}
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
        if any(one.name == name and one.display is None for one in names.exports):
            return True
        if by is None:
            return self._is_read(path, name, MODULE_SCOPE, going)
        if by.scope is None:
            return False
        own = [one for one in names.imports if one.local_name == name and one.scope == by.scope]
        others = len(names.bindings.get((by.scope, name), ())) - len(own)
        stray = [one for one in own if (path, one.statement.span[0], one.index) not in bringing]
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
        """Whether an attribute's owner comes from outside the tree: `re.compile` is nobody's method here."""
        if root is None:
            return True
        names = self.names[path]
        if (MODULE_SCOPE, root) not in names.bindings:
            return root in _BUILT_IN
        brought = [one for one in names.imports if one.local_name == root and one.scope == MODULE_SCOPE]
        every = len(brought) == len(names.bindings[MODULE_SCOPE, root])
        return every and not any(self._is_inside(path, one) for one in brought)

    def _is_inside(self, path: str, one: ImportedName) -> bool:
        return bool(
            one.level or self.resolved(path, one) or any(root + one.module[:1] in self._modules for root in self._roots)
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
            for one in self._idle(path, cuts[path]):
                cuts[path].cut_import(one)
        return cuts

    def _idle(self, path: str, cut: SourceCuts) -> Iterator[ImportedName]:
        """Imports that only what is cut made use of. Those without any use are there for their effects."""
        names = self.names[path]
        exported = {export.name for export in names.exports}
        if path.endswith("__init__.py") or (path in self._starred and not names.has_dunder_all):
            return
        for one in names.imports:
            used = names.import_uses.get(one.local_name, ())
            if (
                one.unconditional
                and one.scope == MODULE_SCOPE
                and not one.redundant
                and one.module != ("__future__",)
                and one.local_name not in exported
                and len(names.bindings[MODULE_SCOPE, one.local_name]) == 1
                and not self._importers.get((path, one.local_name))
                and used
                and all(cut.covers(offset) for offset in used)
            ):
                yield one


def _module(path: str) -> tuple[str, ...]:
    parts = path.removesuffix(".py").split("/")
    return tuple(parts[:-1] if parts[-1] == "__init__" else parts)


def _is_test(path: str, test_paths: Collection[str]) -> bool:
    """Under one of the test paths, or named as what pytest collects."""
    *directories, file = path.split("/")
    return (
        is_under(path, [*test_paths])
        or file.startswith("test_")
        or file.endswith("_test.py")
        or file == "conftest.py"
        or not {"test", "tests"}.isdisjoint(directories)
    )
