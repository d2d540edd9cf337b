"""Runs the tests of a pytest goal apart from the product: tests in one sandbox, product in another.

There the product sees calls and nothing of the tests: no expected value, no test's name, no result to forge. A test
whose objects cannot cross, or whose files are not there, fails for that reason alone, and counts by the shared run
instead. A test that is known to cross may not fail by an assertion there: one that passed so in the untouched
workspace, or one that only compares what the product returns with plain values.
"""

import ast
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.syntax.source import parse_or_none
from gametape.verify import jobs
from gametape.verify.preparation import PreparedTask
from gametape.verify.replay.reason import why_not
from gametape.verify.replay.surface import derive_surface
from gametape.verify.runner import ZygotePool
from gametape.verify.split_mode import SplitRun
from gametape.verify.verifier_run import TestOutcome

_SURROUNDINGS = re.compile(
    rb"autouse|usefixtures|monkeypatch|\bmock\b|environ|chdir|setup_(module|function)|setUp|patch"
)
"""Words of a test file that prepares more than the arguments of calls."""
_VALUE_MAKERS = ("approx", "float", "int", "str", "dict", "list", "set", "tuple", "frozenset", "Decimal", "range")

_PLAIN_NODES = (
    *(ast.Constant, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.UnaryOp, ast.BinOp, ast.Attribute, ast.keyword),
    *(ast.expr_context, ast.operator, ast.unaryop),
)


@dataclass(frozen=True)
class ApartRun:
    """The results of tests that ran apart from the product."""

    passed: frozenset[str] = frozenset()
    refuted: dict[str, str] = field(default_factory=dict)
    """Tests that are known to cross and did not pass, and their messages."""
    not_crossing: frozenset[str] = frozenset()
    """Tests that could only be run in one process with the product."""


def run_apart(
    prepared: PreparedTask,
    sources: SourceTree,
    tests: Collection[str],
    zygotes: ZygotePool,
    known: Collection[str] = (),
) -> ApartRun:
    """Run tests apart from these sources. `known` are tests that passed so before."""
    outcomes = _outcomes(prepared, sources, tests, zygotes)
    failed = [test for test, outcome in outcomes.items() if outcome.result != "passed"]
    suite = prepared.loaded_task.suite
    plain = plain_functions(suite, {jobs.file_of(test) for test in failed})
    suspected = [test for test in failed if test in known or jobs.function_of(test) in plain]
    suspected = [test for test in suspected if _is_answered(outcomes[test])]
    data = suite.only({path for path in suite if not path.endswith(".py")})
    again = _outcomes(prepared, data.overlaid_on(sources), suspected, zygotes) if suspected else {}
    refuted = {test: outcome.message for test, outcome in again.items() if _is_answered(outcome)}
    passed = {test for test, outcome in outcomes.items() if outcome.result == "passed"}
    return ApartRun(frozenset(passed), refuted, frozenset(outcomes) - passed - {*refuted})


def _is_answered(outcome: TestOutcome) -> bool:
    """Whether a test failed although everything crossed: the answer was another one."""
    return outcome.result == "failed" and why_not(outcome).word == "assertion"


def _outcomes(
    prepared: PreparedTask, sources: SourceTree, tests: Collection[str], zygotes: ZygotePool
) -> dict[str, TestOutcome]:
    task = with_product(prepared.loaded_task, sources)
    suite = {test for test in tests if jobs.file_of(test) in task.suite}
    processes = jobs.plan_processes("apart", task.suite, sorted(suite), prepared.file_seconds, messages=True)
    run = SplitRun(task, derive_surface(task), zygotes, prepared.job_seconds)
    return dict(run.run(sources, processes, "apart").outcomes) if processes else {}


def with_product(task: LoadedTask, sources: SourceTree) -> LoadedTask:
    """The task with an attempt in the place of a reference: its modules and classes are what tests reach. Beside the
    tests lies all of the pinned tree that is no code: their configuration and data."""
    around = task.start.only({path for path in task.start if not path.endswith((".py", ".pyi", ".so"))})
    return replace(task, suite=task.suite.overlaid_on(around), reference=sources)


def plain_functions(suite: SourceTree, files: Iterable[str]) -> set[tuple[str, str]]:
    """Test functions (file, name) that take no fixture and whose assertions compare a call's result with values. There
    are none where a conftest file has a fixture that every test uses."""
    found: set[tuple[str, str]] = set()
    if any(path.endswith("conftest.py") and _SURROUNDINGS.search(suite.files[path]) for path in suite):
        return found
    for file in files:
        if file in suite and _SURROUNDINGS.search(suite.files[file]):
            continue
        tree = parse_or_none(suite.files[file], bounded=True) if file in suite else None
        for node in tree.body if tree else []:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test") and _is_plain(node):
                found.add((file, node.name))
    return found


def _is_plain(function: ast.FunctionDef) -> bool:
    parameters = {argument.arg for argument in (*function.args.args, *function.args.kwonlyargs)}
    marks_only = all("mark." in ast.unparse(mark) for mark in function.decorator_list)
    if not marks_only or not parameters <= _parametrized(function):
        return False
    results: set[str] = set()
    checks = 0
    for statement in function.body:
        if isinstance(statement, ast.Assign) and all(isinstance(target, ast.Name) for target in statement.targets):
            if isinstance(statement.value, ast.Call):
                results |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
            elif not _is_value(statement.value, parameters):
                return False
        elif isinstance(statement, ast.Assert) and _compares(statement.test, parameters, results):
            checks += 1
        elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
            return False
    return checks > 0


def _parametrized(function: ast.FunctionDef) -> set[str]:
    """The parameters that marks of the function give."""
    names: set[str] = set()
    for mark in function.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func).endswith("mark.parametrize") and mark.args:
            first = mark.args[0]
            words = first.elts if isinstance(first, (ast.Tuple, ast.List)) else [first]
            for word in words:
                if isinstance(word, ast.Constant) and isinstance(word.value, str):
                    names |= {name.strip() for name in word.value.split(",")}
    return names


def _compares(test: ast.expr, parameters: set[str], results: set[str]) -> bool:
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Eq, ast.NotEq)):
        return False
    left, right = test.left, test.comparators[0]
    return any(
        _is_result(one, results) and _is_value(other, parameters) for one, other in ((left, right), (right, left))
    )


def _is_result(node: ast.expr, results: set[str]) -> bool:
    return isinstance(node, ast.Call) or (isinstance(node, ast.Name) and node.id in results)


def _is_value(node: ast.expr, parameters: set[str]) -> bool:
    """Whether an expression is plain data: literals, parameters, and builtin types made of them."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            known = part.id in parameters or part.id in _VALUE_MAKERS or part.id == "pytest"
        elif isinstance(part, ast.Call):
            known = ast.unparse(part.func).rpartition(".")[2] in _VALUE_MAKERS
        else:
            known = isinstance(part, _PLAIN_NODES)
        if not known:
            return False
    return True
