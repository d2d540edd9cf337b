"""Violations of the structure that a task declares, read from the syntax trees of the sources."""

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
    """A broken rule, with file and line."""

    rule: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.rule}"


def new_violations(task: Task, sources: SourceTree, trusted: SourceTree) -> list[StructureViolation] | None:
    """Violations in a tree that a trusted one does not have; None where the task declares no rules."""
    rules = task.architecture
    if rules is None or not (rules.contracts or rules.layers or rules.forbidden_modules or rules.public_api):
        return None
    known = {(violation.rule, violation.file) for violation in violations(task, rules, trusted)}
    current = violations(task, rules, sources)
    return [violation for violation in current if (violation.rule, violation.file) not in known]


def violations(task: Task, rules: Architecture, sources: SourceTree) -> list[StructureViolation]:
    """Every violation in a tree."""
    violating = []
    for path, module, imported in _every_import(task, sources):
        violating += [StructureViolation(rule, path, imported.line) for rule in _broken(rules, module, imported)]
    violating += [StructureViolation(rule, path, line) for path, line, rule in _hidden_imports(task, rules, sources)]
    for module, names in rules.public_api.items():
        for path, line, rule in missing_from_api(task, sources, module, names):
            violating.append(StructureViolation(rule, path, line))
    return violating


def _hidden_imports(task: Task, rules: Architecture, sources: SourceTree) -> Iterator[tuple[str, int, str]]:
    """Imports that no rule can follow, in modules to which a rule applies: computed names and `sys.modules`."""
    for path in sorted(sources):
        module = module_name(path, task.import_roots) or ""
        restricted = rules.forbidden_modules or _layer(rules.layers, module) or _is_importer(rules, module)
        tree = parse_source(sources.files[path]) if restricted and path.endswith(".py") else None
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
            is_package = path.endswith("/__init__.py") or path == "__init__.py"
            for imported in module_imports(tree, name, is_package):
                yield path, name, imported


def _broken(rules: Architecture, module: str, imported: ModuleImport) -> Iterator[str]:
    for contract in rules.contracts:
        if _within(module, contract.importer):
            for forbidden in contract.forbidden:
                if imported.reaches(forbidden) and not _within(module, forbidden):
                    yield f"{contract.importer} may not import {forbidden}"
    for forbidden in rules.forbidden_modules:
        if imported.reaches(forbidden):
            yield f"nothing may import {forbidden}"
    layer = _layer(rules.layers, module)
    if layer is not None:
        for above in rules.layers[:layer]:
            if imported.reaches(above) and _layer(rules.layers, _longest(imported, above)) != layer:
                yield f"{rules.layers[layer]} may not import {above}, which stands above it"


def _longest(imported: ModuleImport, module: str) -> str:
    return max((target for target in imported.targets if _within(target, module)), key=len)


def _layer(layers: list[str], module: str) -> int | None:
    """The index of the layer that a module belongs to: the most specific one that contains it."""
    containing = [(len(layer), index) for index, layer in enumerate(layers) if _within(module, layer)]
    return max(containing)[1] if containing else None


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")
