"""Layer `quality`: of the code that was written, and only of that.

Four parts, the last only where a run measured it: complexity beyond the level of the task's own code, dead code,
repeated code, and the share of the written statements that the tests ran. What the reference has as much of is not
held against an attempt.
"""

import ast
from collections.abc import Iterator

from gametape.core.verdict import Check
from gametape.verify.layers import coverage, dead, duplication
from gametape.verify.layers.case import Case
from gametape.verify.layers.change import Change
from gametape.verify.layers.complexity import complexity
from gametape.verify.layers.novelty import falling, listed
from gametape.verify.tools.source import functions, parse
from gametape.verify.tree import Tree

NAME = "quality"

COMPLEXITY, DEAD, REPEATED, COVERAGE = 0.3, 0.2, 0.2, 0.3

ORDINARY_COMPLEXITY = 10
"""A level that nobody is blamed for, however simple the task's own code is."""

Part = tuple[float, float, list[str]]
"""Weight, score and the worst offenders."""


def score(case: Case) -> Check | None:
    asked = case.start if case.reference_change is None else case.reference_change.files
    if not any(path.endswith(".py") for path in asked):
        return None  # the task is about something else
    written = {path: lines for path in case.sources if (lines := case.change.lines(path))}
    modules = _parsed(case.sources)
    if unreadable := [path for path in written if path.endswith(".py") and path not in modules]:
        return case.check(NAME, 0.0, f"cannot be parsed: {listed(unreadable)}")
    parts = [_complexity(case, modules), _dead(case, modules), _repeated(case, modules)]
    parts += [part] if (part := _coverage(case, modules)) else []
    total = sum(weight * value for weight, value, _ in parts) / sum(weight for weight, _, _ in parts)
    offenders = [offender for _, _, some in parts for offender in some[:3]]
    return case.check(NAME, total, listed(offenders, most=8) if offenders else "nothing to complain about")


def _parsed(tree: Tree) -> dict[str, ast.Module]:
    modules = {path: parse(content) for path, content in tree.files.items() if path.endswith(".py")}
    return {path: module for path, module in modules.items() if module is not None}


def _complexity(case: Case, modules: dict[str, ast.Module]) -> Part:
    own = _parsed(case.start if case.reference is None else case.reference)
    level = max([ORDINARY_COMPLEXITY, *(complexity(one) for module in own.values() for _, one in functions(module))])
    found = []
    for path, module in modules.items():
        for name, function in functions(module):
            body = range(function.lineno, (function.end_lineno or function.lineno) + 1)
            if case.change.lines(path).intersection(body) and (value := complexity(function)) > level:
                found.append((value, f"{path}:{function.lineno}: {name} has complexity {value}, the level is {level}"))
    excess = sum(value - level for value, _ in found) / level
    return COMPLEXITY, 1 / (1 + excess), [text for _, text in sorted(found, reverse=True)]


def _dead(case: Case, modules: dict[str, ast.Module]) -> Part:
    found = list(_dead_code(case, modules, case.change))
    if case.reference is not None and case.reference_change is not None:
        tolerated = len(list(_dead_code(case, _parsed(case.reference), case.reference_change)))
    else:
        tolerated = 0
    return DEAD, falling(max(0, len(found) - tolerated), case.size), found if len(found) > tolerated else []


def _dead_code(case: Case, modules: dict[str, ast.Module], change: Change) -> Iterator[str]:
    tests = _parsed(case.attempt.subject.suite)
    used = frozenset[str]().union(*(dead.mentioned(module) for module in (*modules.values(), *tests.values())))
    for path, module in modules.items():
        lines = change.lines(path)
        if not lines:
            continue
        unused = ((line, f"`{name}` is never used") for line, name in dead.defined(module) if name not in used)
        for line, what in (*dead.unreachable(module), *dead.unused_variables(module), *unused):
            if line in lines:
                yield f"{path}:{line}: {what}"


def _repeated(case: Case, modules: dict[str, ast.Module]) -> Part:
    share, found = _repetition(modules, case.change)
    if case.reference is not None and case.reference_change is not None:
        share = max(0.0, share - _repetition(_parsed(case.reference), case.reference_change)[0])
    return REPEATED, 1 - share, found if share else []


def _repetition(modules: dict[str, ast.Module], change: Change) -> tuple[float, list[str]]:
    """The share of the written lines that repeats other code, and where each copy begins."""
    written = {path: change.lines(path) for path in modules}
    copies = duplication.copies(modules, written)
    total = sum(len(lines) for lines in written.values())
    begins = sorted(place for place in copies if (place[0], place[1] - 1) not in copies)
    texts = [f"{file}:{line}: repeats {copies[file, line].file}:{copies[file, line].first}" for file, line in begins]
    return (len(copies) / total if total else 0.0), texts


def _coverage(case: Case, modules: dict[str, ast.Module]) -> Part | None:
    measured = [run.covered for run in case.runs if run.covered]
    if not measured:
        return None
    wanted, missed = 0, []
    for path, module in modules.items():
        ran = frozenset[int]().union(*(covered.get(path, frozenset()) for covered in measured))
        for first, last in coverage.statements(module):
            if first in case.change.lines(path):
                wanted += 1
                missed += [f"{path}:{first}: never ran"] if ran.isdisjoint(range(first, last + 1)) else []
    return COVERAGE, 1 - len(missed) / wanted if wanted else 1.0, sorted(missed)
