"""Analyze a project's suite: the baseline, and which tests reach which function (one run under coverage.py's contexts).

The analysis is one record of the mining log, so that a resumed run does not repeat it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from gametape.tasks.mining.baseline import SuiteBaseline, establish_baseline
from gametape.tasks.mining.functions import Function, functions_in
from gametape.tasks.mining.project_runner import ProjectRunner, surveys_by_file
from gametape.tasks.project import Project

_SLOWER = 6.0
"""How many times longer a run under coverage may take."""


@dataclass(frozen=True)
class CoverageMap:
    """`tests` has the reliable tests of every function that one reaches. Functions that run while modules are imported
    are `protected`: without them no test could be collected."""

    tests: Mapping[Function, frozenset[str]]
    protected: frozenset[Function]

    def tests_of(self, functions: Iterable[Function]) -> frozenset[str]:
        """The tests that reach any of these functions."""
        return frozenset[str]().union(*(self.tests.get(function, frozenset()) for function in functions))


def source_functions(project: Project) -> list[Function]:
    """Every deletable function of the sources, without tests that are inside the package."""
    sources = [path for path in sorted(project.tree) if path.endswith(".py") and project.is_source(path)]
    return [function for path in sources for function in functions_in(path, project.tree.text(path))]


def map_coverage(runner: ProjectRunner, baseline: SuiteBaseline) -> CoverageMap:
    """Run every reliable test once more, under coverage."""
    functions = source_functions(runner.project)
    by_path: dict[str, list[Function]] = {}
    for function in functions:
        by_path.setdefault(function.path, []).append(function)
    spans = {path: [(covered.body_line, covered.last_line) for covered in of_path] for path, of_path in by_path.items()}
    requests = surveys_by_file(baseline.tests, lambda file: _SLOWER * baseline.seconds_for(file))
    reliable = frozenset(baseline.tests)
    tests: dict[Function, set[str]] = {}
    protected: set[Function] = set()
    for result in runner.survey([replace(request, spans=spans) for request in requests]):
        for path, contexts in result.reached.items():
            for function, names in zip(by_path[path], contexts, strict=True):
                if "" in names:
                    protected.add(function)
                if known := reliable.intersection(names):
                    tests.setdefault(function, set()).update(known)
    return CoverageMap(
        {covered: frozenset(tests[covered]) for covered in functions if covered in tests}, frozenset(protected)
    )


@dataclass(frozen=True)
class SuiteAnalysis:
    baseline: SuiteBaseline
    coverage_map: CoverageMap

    def to_record(self) -> dict[str, Any]:
        """The analysis as a record of the mining log: functions by their names, tests by their numbers."""
        numbers = {test: number for number, test in enumerate(self.baseline.tests)}
        reached = {
            str(function): sorted(numbers[test] for test in tests)
            for function, tests in self.coverage_map.tests.items()
        }
        protected = sorted(map(str, self.coverage_map.protected))
        baseline = {**asdict(self.baseline), "together": sorted(self.baseline.together)}
        return {"kind": "learned", "baseline": baseline, "reached": reached, "protected": protected}


def analyze_suite(runner: ProjectRunner, seed: int) -> SuiteAnalysis:
    baseline = establish_baseline(runner, seed)
    return SuiteAnalysis(baseline, map_coverage(runner, baseline))


def analysis_from_record(record: Mapping[str, Any], project: Project) -> SuiteAnalysis:
    """Read what `to_record` wrote for the same project."""
    functions: dict[str, Function] = {str(function): function for function in source_functions(project)}
    baseline = TypeAdapter(SuiteBaseline).validate_python(record["baseline"])
    tests = baseline.tests
    reached = {
        functions[name]: frozenset(tests[number] for number in numbers) for name, numbers in record["reached"].items()
    }
    return SuiteAnalysis(baseline, CoverageMap(reached, frozenset(functions[name] for name in record["protected"])))
