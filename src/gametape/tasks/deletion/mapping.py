"""Which function is reached by which tests, from one run under coverage.py's contexts."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gametape.tasks.deletion.baseline import Baseline
from gametape.tasks.deletion.functions import Function, functions_in
from gametape.tasks.deletion.project import Project
from gametape.tasks.deletion.site import Site, file_steps
from gametape.verify.tree import is_under

_SLOWER = 6.0
"""How much longer a run under coverage may take."""


@dataclass(frozen=True)
class Reached:
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


def reach(site: Site, baseline: Baseline) -> Reached:
    """Run every reliable test once more, watched."""
    functions = source_functions(site.project)
    by_path: dict[str, list[Function]] = {}
    for function in functions:
        by_path.setdefault(function.path, []).append(function)
    spans = {path: [(one.body, one.last) for one in found] for path, found in by_path.items()}
    steps = file_steps(baseline.tests, lambda file: _SLOWER * baseline.seconds_for(file))
    reliable = frozenset(baseline.tests)
    tests: dict[Function, set[str]] = {}
    protected: set[Function] = set()
    for findings in site.survey([replace(step, spans=spans) for step in steps]):
        for path, contexts in findings.reached.items():
            for function, names in zip(by_path[path], contexts, strict=True):
                if "" in names:
                    protected.add(function)
                if known := reliable.intersection(names):
                    tests.setdefault(function, set()).update(known)
    return Reached({one: frozenset(tests[one]) for one in functions if one in tests}, frozenset(protected))
