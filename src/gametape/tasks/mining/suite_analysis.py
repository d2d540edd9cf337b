"""Which function is reached by which tests, from one run under coverage.py's contexts."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from gametape.record.source_tree import is_under
from gametape.tasks.mining.baseline import SuiteBaseline, establish_baseline
from gametape.tasks.mining.functions import Function, functions_in
from gametape.tasks.mining.project_runner import ProjectRunner, surveys_by_file
from gametape.tasks.project import Project

_SLOWER = 6.0
"""How much longer a run under coverage may take."""


@dataclass(frozen=True)
class CoverageMap:
    """`tests` has the reliable tests of every function that a test reaches. Those that run when modules are imported
    are `protected`: without them nothing could be collected."""

    tests: Mapping[Function, frozenset[str]]
    protected: frozenset[Function]


def source_functions(project: Project) -> list[Function]:
    """Every function of the sources that has a body to delete; tests that lie among the sources are none."""
    files = [path for path in sorted(project.tree) if path.endswith(".py")]
    sources = [
        path for path in files if is_under(path, [*project.source_paths]) and not is_under(path, [*project.test_paths])
    ]
    return [one for path in sources for one in functions_in(path, project.tree.text(path))]


def map_coverage(runner: ProjectRunner, baseline: SuiteBaseline) -> CoverageMap:
    """Run every reliable test once more, watched."""
    functions = source_functions(runner.project)
    by_path: dict[str, list[Function]] = {}
    for function in functions:
        by_path.setdefault(function.path, []).append(function)
    spans = {path: [(one.body_line, one.last_line) for one in found] for path, found in by_path.items()}
    steps = surveys_by_file(baseline.tests, lambda file: _SLOWER * baseline.seconds_for(file))
    reliable = frozenset(baseline.tests)
    tests: dict[Function, set[str]] = {}
    protected: set[Function] = set()
    for findings in runner.survey([replace(step, spans=spans) for step in steps]):
        for path, contexts in findings.reached.items():
            for function, names in zip(by_path[path], contexts, strict=True):
                if "" in names:
                    protected.add(function)
                if known := reliable.intersection(names):
                    tests.setdefault(function, set()).update(known)
    return CoverageMap({one: frozenset(tests[one]) for one in functions if one in tests}, frozenset(protected))


@dataclass(frozen=True)
class SuiteAnalysis:
    baseline: SuiteBaseline
    coverage_map: CoverageMap

    def to_record(self) -> dict[str, Any]:
        """Functions by their place, tests by their number."""
        numbers = {test: number for number, test in enumerate(self.baseline.tests)}
        places = {str(one): sorted(numbers[test] for test in tests) for one, tests in self.coverage_map.tests.items()}
        protected = sorted(map(str, self.coverage_map.protected))
        baseline = {**asdict(self.baseline), "together": sorted(self.baseline.together)}
        return {"kind": "learned", "baseline": baseline, "reached": places, "protected": protected}


def analyze_suite(runner: ProjectRunner, seed: int) -> SuiteAnalysis:
    baseline = establish_baseline(runner, seed)
    return SuiteAnalysis(baseline, map_coverage(runner, baseline))


def analysis_from_record(record: Mapping[str, Any], project: Project) -> SuiteAnalysis:
    """What `record` wrote down of the same code base."""
    functions: dict[str, Function] = {str(one): one for one in source_functions(project)}
    known = record["baseline"]
    tests = tuple(known["tests"])
    baseline = SuiteBaseline(
        tests=tests,
        set_aside={reason: tuple(ids) for reason, ids in known["set_aside"].items()},
        seconds=known["seconds"],
        slowest=known["slowest"],
        together=frozenset(known["together"]),
        collected=tuple(known["collected"]),
    )
    reached = {functions[place]: frozenset(tests[one] for one in found) for place, found in record["reached"].items()}
    return SuiteAnalysis(baseline, CoverageMap(reached, frozenset(functions[place] for place in record["protected"])))
