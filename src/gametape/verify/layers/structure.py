"""What a task says must hold of the structure, read from the syntax trees of sources."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from gametape.core.task import Architecture, Task
from gametape.record.source_tree import SourceTree
from gametape.verify.layers.imports import ModuleImport, module_imports, module_name
from gametape.verify.layers.public_api import missing_from_api
from gametape.verify.static_analysis.python_source import parse_source


@dataclass(frozen=True)
class StructureViolation:
    """A rule, and where it is broken."""

    rule: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}"


def new_violations(task: Task, sources: SourceTree, trusted: SourceTree) -> list[StructureViolation] | None:
    """What breaks a rule in a tree and not in a trusted one; None where the task declares no rules."""
    rules = task.architecture
    if rules is None or not (rules.contracts or rules.layers or rules.forbidden_modules or rules.public_api):
        return None
    known = {(one.rule, one.file) for one in violations(task, rules, trusted)}
    return [one for one in violations(task, rules, sources) if (one.rule, one.file) not in known]


def violations(task: Task, rules: Architecture, sources: SourceTree) -> list[StructureViolation]:
    """Everything in a tree that breaks a rule."""
    found = []
    for path, module, one in _every_import(task, sources):
        found += [StructureViolation(rule, path, one.line) for rule in _broken(rules, module, one)]
    found += [StructureViolation(what, path, line) for path, line, what in _hidden_imports(task, rules, sources)]
    for module, names in rules.public_api.items():
        for path, line, what in missing_from_api(task, sources, module, names):
            found.append(StructureViolation(what, path, line))
    return found


def _hidden_imports(task: Task, rules: Architecture, sources: SourceTree) -> Iterator[tuple[str, int, str]]:
    """Ways to import that no rule can follow, in modules that may not import everything: computed names, and the table
    of loaded modules."""
    for path in sorted(sources):
        module = module_name(path, task.import_roots) or ""
        bound = rules.forbidden_modules or _layer(rules.layers, module) or _is_importer(rules, module)
        tree = parse_source(sources.files[path]) if bound and path.endswith(".py") else None
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__"):
                if not node.args or not isinstance(node.args[0], ast.Constant):
                    yield path, node.lineno, "imports a module whose name is computed"
            elif isinstance(node, ast.Attribute) and node.attr == "modules" and getattr(node.value, "id", "") == "sys":
                yield path, node.lineno, "reaches into sys.modules"


def _is_importer(rules: Architecture, module: str) -> bool:
    return any(_within(module, contract.importer) for contract in rules.contracts)


def _called(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def _every_import(task: Task, sources: SourceTree) -> Iterator[tuple[str, str, ModuleImport]]:
    for path in sorted(sources):
        module = module_name(path, task.import_roots)
        tree = parse_source(sources.files[path]) if path.endswith(".py") else None
        if tree is not None:
            name = module or path.removesuffix(".py").replace("/", ".")
            for one in module_imports(tree, name, is_package=path.endswith("/__init__.py") or path == "__init__.py"):
                yield path, name, one


def _broken(rules: Architecture, module: str, one: ModuleImport) -> Iterator[str]:
    for contract in rules.contracts:
        if _within(module, contract.importer):
            for forbidden in contract.forbidden:
                if one.reaches(forbidden) and not _within(module, forbidden):
                    yield f"{contract.importer} may not import {forbidden}"
    for forbidden in rules.forbidden_modules:
        if one.reaches(forbidden):
            yield f"nothing may import {forbidden}"
    place = _layer(rules.layers, module)
    if place is not None:
        for above in rules.layers[:place]:
            if one.reaches(above) and _layer(rules.layers, _longest(one, above)) != place:
                yield f"{rules.layers[place]} may not import {above}, which stands above it"


def _longest(one: ModuleImport, module: str) -> str:
    return max((target for target in one.targets if _within(target, module)), key=len)


def _layer(layers: list[str], module: str) -> int | None:
    """The layer a module belongs to: the most exact of those that contain it."""
    fitting = [(len(layer), index) for index, layer in enumerate(layers) if _within(module, layer)]
    return max(fitting)[1] if fitting else None


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")
