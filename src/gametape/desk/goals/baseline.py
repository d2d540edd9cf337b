"""The baseline of a goal: what the success command reports for the untouched workspace, and the task made from it."""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field

from gametape.core.base_model import StrictModel
from gametape.core.errors import BadInput
from gametape.core.task import Task, TaskTests
from gametape.desk.goals import shell_condition
from gametape.desk.goals.apart_run import run_apart
from gametape.desk.goals.command_judge import find_parts
from gametape.desk.goals.command_trace import CommandTrace
from gametape.desk.goals.deciding_files import DecidingFiles, FileRoles, find_deciding_files, is_source, says_missing
from gametape.desk.goals.minimum_counts import MinimumCounts, count_minimums, imported_modules
from gametape.desk.goals.pytest_observation import GoalTestResult, PytestObservation, PytestObserver
from gametape.desk.goals.success_command import SuccessCriterion, plain_command, read_command
from gametape.desk.goals.told_files import check_data_read_by_product
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree, is_under, parent_directories
from gametape.sandbox.policy import WORKSPACE
from gametape.sandbox.result import ExecResult
from gametape.syntax.pytest_ids import split_test_id
from gametape.tasks.mining.project_layout.suite_discovery import find_test_paths
from gametape.verify import jobs
from gametape.verify.preparation import PreparedTask, run_processes
from gametape.verify.runner import ZygotePool
from gametape.verify.twins.plan import TwinPlan, ValidatedTwin, validate_twins
from gametape.verify.twins.suite_twins import twins_of_suite
from gametape.verify.verifier_run import parse_report


class GoalBaseline(StrictModel):
    """The results before the first attempt. Every test that the command selects has to pass in the end, except those
    that were skipped or excused (xfail) here: they may stay so, but may not fail. A strict goal excuses none."""

    test_paths: list[str]
    import_roots: list[str]
    files: list[list[str]]
    """For each run of pytest in the command, the test files it reads."""
    results: dict[str, GoalTestResult] = Field(default_factory=dict)
    deselected: list[str] = Field(default_factory=list)
    broken: dict[str, str] = Field(default_factory=dict)
    """Test files that could not be collected, and the error message."""
    floors: dict[str, int] = Field(default_factory=dict)
    """For each test function of such a file, the minimum number of tests that it must have."""
    unread_excused: list[str] = Field(default_factory=list)
    """Test functions of such files whose own marks skip or excuse them."""
    seconds: dict[str, float] = Field(default_factory=dict)
    """By test file."""
    exit_codes: list[int] = Field(default_factory=list)
    """The exit codes of the conditions that are not pytest runs."""
    apart: list[str] = Field(default_factory=list)
    """Tests that pass with the product in another sandbox."""
    usual: list[tuple[str, str]] = Field(default_factory=list)
    """Process events (kind, detail) that the tests cause without any agent."""
    pinned: list[str] = Field(default_factory=list)
    """Files that the command read and that belong to the check."""
    product: list[str] = Field(default_factory=list)
    """Files that the other conditions than pytest runs read and that are the product."""
    check_directories: list[str] = Field(default_factory=list)
    """Directories with files of the check and none of the product."""
    written: list[str] = Field(default_factory=list)
    """Files that the command itself writes."""
    looked_for: list[str] = Field(default_factory=list)
    """Files that the other conditions than pytest runs asked for, and that were not there."""
    golden: list[str] = Field(default_factory=list)
    """Data of the check that processes of the product read."""
    named_missing: list[str] = Field(default_factory=list)
    """Those of which the command said that they are missing."""
    traced: bool = True
    """False where more files were asked for than a trace keeps. Then no run of a shell condition will count."""
    plan: dict[str, Any] = Field(default_factory=lambda: {"validated": []})
    """Validated twins of the tests that passed, as JSON."""

    @property
    def deciding_files(self) -> DecidingFiles:
        return DecidingFiles(frozenset(self.pinned), frozenset(self.product), frozenset(self.check_directories))

    @property
    def collected(self) -> int:
        return len(self.results) + len(self.deselected)

    def tests(self, *what: GoalTestResult) -> list[str]:
        return [test for test, result in self.results.items() if result in what]

    def holds(self, strict: bool) -> bool:
        """Whether nothing in these results speaks against success. Tests of which none passes do."""
        if self.results and not self.tests("passed"):
            return False
        excused = set(self.excused(strict))
        passing = all(result == "passed" or test in excused for test, result in self.results.items())
        return passing and not self.broken and not any(self.exit_codes)

    def minimum_counts(self, strict: bool) -> dict[str, int]:
        """The minimum number of tests of each function that could not be collected."""
        return {**self.floors, **(dict.fromkeys(self.unread_excused, 1) if strict else {})}

    def excused(self, strict: bool) -> list[str]:
        """Tests that need not pass."""
        return [] if strict else self.tests("skipped", "xfailed")


_MIN_FILE_SECONDS, _SLACK = 120.0, 10.0
_MIN_TOTAL_SECONDS = 600.0
_ROUNDS = 2
_MAX_TWIN_FUNCTIONS = 24
"""How many functions get twins, out of those whose tests passed: a verdict uses no more."""


def goal_task(
    name: str, instruction: str, start: SourceTree, baseline: GoalBaseline, interpreter: Path | None, tests: TaskTests
) -> LoadedTask:
    """The goal as a task: everything in the workspace may be changed except its tests and the test configuration."""
    task = Task(
        name=name,
        mode="shared",
        instruction=instruction,
        source_paths=["."],
        test_paths=baseline.test_paths,
        import_roots=baseline.import_roots,
        tests=tests,
    )
    return LoadedTask(task, start, start.under(baseline.test_paths), interpreter=interpreter)


def prepare_goal_task(task: LoadedTask, baseline: GoalBaseline) -> PreparedTask:
    """A prepared task with the facts that a verifier would otherwise learn from a reference solution."""
    files = jobs.group_by_file(task.task.tests.every)
    seconds = {file: max(_MIN_FILE_SECONDS, _SLACK * baseline.seconds.get(file, 0.0)) for file in files}
    patience = _MIN_TOTAL_SECONDS + 2 * _SLACK * sum(baseline.seconds.values())
    known = TwinPlan.from_json(baseline.plan)
    plan = TwinPlan((*known.validated, *_twins_of_failing_tests(task.suite, task.task.tests.fail_to_pass)))
    return PreparedTask(task, plan, seconds, patience, True, frozenset(baseline.usual))


def _twins_of_failing_tests(suite: SourceTree, tests: Sequence[str]) -> list[ValidatedTwin]:
    ids: dict[tuple[str, str], list[str]] = {}
    for test in tests:
        ids.setdefault(split_test_id(test), []).append(test)
    suite_twins = twins_of_suite(suite, tests)
    validated = []
    for key, twins in suite_twins.items():
        for twin in twins:
            wanted = {f"{key[0]}::{key[1]}[{changed.case}]" for changed in twin.cases}
            flips = tuple(test for test in ids[key] if not wanted or test in wanted)
            validated += [ValidatedTwin(key[0], twin, flips)] if flips else []
    return validated


def with_twins(bare: GoalBaseline, start: SourceTree, interpreter: Path | None, zygotes: ZygotePool) -> GoalBaseline:
    """The baseline with what runs over the pinned tree show: validated twins, the tests' own process events, and which
    tests pass apart from the product."""
    passing = bare.tests("passed")
    if not passing:
        return bare
    tests = TaskTests(fail_to_pass=[], pass_to_pass=passing)
    task = goal_task("baseline", "", start, bare, interpreter, tests)
    prepared = prepare_goal_task(task, bare)
    sources = start.without(set(task.suite))

    def run(suite: SourceTree, ids: Sequence[str]) -> dict[str, str]:
        processes = jobs.plan_processes("twins", suite, ids, prepared.file_seconds, blank=True)
        report = parse_report(run_processes(prepared, sources, zygotes, suite, processes), processes)
        return {test: report.result(test) for test in ids}

    processes = jobs.plan_processes("baseline", task.suite, passing, prepared.file_seconds)
    report = parse_report(run_processes(prepared, sources, zygotes, task.suite, processes), processes)
    usual = {(event.kind, event.detail) for event in report.events}
    functions = sorted({split_test_id(test) for test in passing})
    tried = {*random.Random(len(functions)).sample(functions, min(len(functions), _MAX_TWIN_FUNCTIONS))}
    plan = validate_twins(task.suite, [test for test in passing if split_test_id(test) in tried], run, _ROUNDS)
    apart = run_apart(prepared, sources, passing, zygotes).passed
    return bare.model_copy(update={"usual": sorted(usual), "plan": plan.to_json(), "apart": sorted(apart)})


_PYTEST_CONFIG_FILES = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_LIBRARIES = frozenset(("pytest", "unittest"))
_CANNOT_START = (126, 127)
_PYTEST_USAGE_ERROR = 4


def measure_baseline(
    start: SourceTree,
    success: str,
    interpreter: Path | None,
    strict: bool,
    zygotes: ZygotePool,
    roles: FileRoles | None = None,
) -> GoalBaseline:
    """Run the success command over the start tree. `roles` says which files are the product or the check, if the user
    did. Raises `BadInput` for a command that cannot start, that collects no test, or that can never be satisfied."""
    criterion = read_command(success)
    _refuse_other_roots(criterion, start)
    roots = _import_roots(start, criterion)
    observer = PytestObserver(start, interpreter, roots)
    files: list[list[str]] = []
    observation = PytestObservation()
    for run in criterion.pytest_runs:
        selected, observed = observer.survey(run)
        if not selected:
            raise BadInput(f"no test is collected by: {success}")
        files.append(selected)
        observation.merge(observed)
    if criterion.pytest_runs and not observation.results and not observation.broken:
        raise BadInput(f"no test is selected by: {success}")
    if strict and observation.deselected:
        raise BadInput(
            "--strict lets no test be deselected, and the command or the configuration deselects "
            f"{len(observation.deselected)}, such as {observation.deselected[0]}"
        )
    test_paths = _test_paths(start, {file for selected in files for file in selected})
    unread = MinimumCounts()
    for run, selected in zip(criterion.pytest_runs, files, strict=True):
        broken = {file: error for file, error in observation.broken.items() if file in selected}
        unread.merge(count_minimums(observer, run, broken, test_paths))
    bare = GoalBaseline(
        test_paths=test_paths,
        import_roots=[*roots],
        files=files,
        results=observation.results,
        deselected=observation.deselected,
        broken=observation.broken,
        floors=unread.minimums,
        unread_excused=unread.excused,
        seconds=observation.seconds,
    )
    traced = _trace_command(
        criterion, start, bare, interpreter, replace(roles or FileRoles(), test_paths=tuple(test_paths))
    )
    return with_twins(traced, start, interpreter, zygotes)


def _trace_command(
    criterion: SuccessCriterion, start: SourceTree, bare: GoalBaseline, interpreter: Path | None, roles: FileRoles
) -> GoalBaseline:
    """The baseline with the exit codes of conditions that are not pytest runs, and the files that all of them read."""
    task = goal_task("baseline", "", start, bare, interpreter, TaskTests(fail_to_pass=[], pass_to_pass=[]))

    runs = [shell_condition.run_command(command, start, task, "all") for command in criterion.shell_commands]
    results = [each.result for each in runs]
    known = find_parts(results, start, roles)
    for command, result in zip(criterion.shell_commands, results, strict=True):
        if result.exit_code in _CANNOT_START:
            stderr_lines = result.stderr.strip().splitlines()
            raise BadInput(f"the success command cannot start: {stderr_lines[-1] if stderr_lines else command.text}")
    seconds = max(_MIN_FILE_SECONDS, _SLACK * sum(bare.seconds.values()))
    plain = [plain_command(run, bare.import_roots) for run in criterion.pytest_runs]
    tested = [shell_condition.run_command(command, start, task, "opened", seconds).result for command in plain]
    for result in tested:
        _refuse_unusable_settings(result)
    data = {path for result in tested if result.trace for path in _test_data(CommandTrace(result.trace, start), roles)}
    traces = [result.trace for result in (*results, *tested) if result.trace]
    return bare.model_copy(
        update={
            "exit_codes": [result.exit_code for result in results],
            "test_paths": [*bare.test_paths, *sorted(data | _pinned_by_user(criterion, start, roles))],
            "pinned": sorted(
                {*known.pinned, *data, *start.under(list(roles.pinned))} if roles.pinned else {*known.pinned, *data}
            ),
            "product": sorted(known.product - data),
            "check_directories": sorted(known.check_directories),
            "written": sorted({path for each in runs for path in _written(each, start)}),
            "looked_for": sorted({path for run in results if run.trace for path in _missed(run, start)}),
            "golden": sorted(
                {
                    path
                    for run in results
                    if run.trace
                    for path in check_data_read_by_product(CommandTrace(run.trace, start), known.pinned)
                }
            ),
            "named_missing": sorted({path for run in results if run.trace for path in _named_missing(run, start)}),
            "traced": all(trace.complete for trace in traces),
        }
    )


def _refuse_unusable_settings(result: ExecResult) -> None:
    """Raise `BadInput` where pytest cannot use its settings: they are pinned, so the command could never succeed. What
    a conftest imports may still be written."""
    output = result.stdout + result.stderr
    errors = [line for line in output.splitlines() if line.startswith("ERROR: ") or ": error: " in line]
    if result.exit_code == _PYTEST_USAGE_ERROR and errors and "conftest" not in output and "not found: " not in output:
        text = " ".join(errors[0].removeprefix("ERROR: ").replace(f"{WORKSPACE}/", "").split())
        raise BadInput(f"pytest refuses the success command: {text}")


def _pinned_by_user(criterion: SuccessCriterion, start: SourceTree, roles: FileRoles) -> set[str]:
    """Files that lie with the tests when they run, since the user says so."""
    pinned = start.under(list(roles.pinned)) if criterion.pytest_runs and roles.pinned else SourceTree()
    return {path for path in pinned if not is_under(path, list(roles.test_paths))}


def _written(run: shell_condition.CommandRun, start: SourceTree) -> set[str]:
    return {*run.rewritten, *(CommandTrace(run.result.trace, start).written if run.result.trace else ())}


def _missed(result: ExecResult, start: SourceTree) -> set[str]:
    """The paths that a run asked for and that are neither a file nor a directory."""
    assert result.trace is not None
    there = {*start, *(above for path in start for above in parent_directories(path))}
    trace = CommandTrace(result.trace, start)
    return {path for path in trace.looked_at_by if path not in there and "__pycache__" not in path}


def _named_missing(result: ExecResult, start: SourceTree) -> set[str]:
    lines = [line for line in (result.stdout + result.stderr).splitlines() if says_missing(line)]
    return {path for path in _missed(result, start) if any(path in line for line in lines)}


def _test_data(run: CommandTrace, roles: FileRoles) -> set[str]:
    """What the tests read and what is no code: expected results and settings, unless it lies in a package or the user
    calls it product."""
    parts = find_deciding_files(run, roles)
    packages = {
        path.rpartition("/")[0] for path in run.tree if is_source(path) and not is_under(path, list(roles.test_paths))
    }
    data = {path for path in parts.pinned | parts.product if not is_source(path, run.tree.files[path])}
    data = {
        path for path in data if path.rpartition("/")[0] not in packages - {""} and path not in _PYTEST_CONFIG_FILES
    }
    return {path for path in data if not is_under(path, [*roles.test_paths, *roles.product])}


def _refuse_other_roots(criterion: SuccessCriterion, start: SourceTree) -> None:
    for run in criterion.pytest_runs:
        own = [f"{run.directory}/{name}" for name in _PYTEST_CONFIG_FILES[:2]] if run.directory != "." else []
        if any(path in start for path in own):
            raise BadInput(f"{run.directory} has a pytest configuration of its own; give it as --workspace")


def _import_roots(start: SourceTree, criterion: SuccessCriterion) -> tuple[str, ...]:
    """The directories that `python -m pytest` would import from, and `src` where there is one."""
    named = [root for run in criterion.pytest_runs for root in (run.directory, *run.import_roots)]
    roots = dict.fromkeys([*named, "."])
    sources = [f"{root}/src" if root != "." else "src" for root in roots]
    return (*roots, *(path for path in sources if start.under([path]).files))


def _test_paths(start: SourceTree, files: set[str]) -> list[str]:
    """Directories and files with tests: they are pinned, and new files in them do not count."""
    packages = tuple({path.split("/")[0] for path in start if path.endswith(".py")})
    paths = [*find_test_paths(start, packages)]
    paths += sorted(file for file in files if not is_under(file, paths))
    return [*paths, *_support(start, paths)] or ["tests"]


def _support(start: SourceTree, test_paths: list[str]) -> list[str]:
    """Support modules of the tests: they import a test library, and no product module imports them."""
    imported = {path: imported_modules(content) for path, content in start.files.items() if path.endswith(".py")}
    product = {path for path in imported if not is_under(path, test_paths)}
    support = {path for path in product if _LIBRARIES & {name.partition(".")[0] for name in imported[path]}}
    used = {name.rpartition(".")[2] for path in product - support for name in imported[path]}
    return sorted(path for path in support if path.rpartition("/")[2].removesuffix(".py") not in used)
