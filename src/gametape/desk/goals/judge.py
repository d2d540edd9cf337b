"""Judges an attempt at a goal: is the goal reached, and was anything tampered with?

Checks that decide, all with the pinned tests and configuration: the verifier runs every required test, with twins, so
that a process cannot fake its result; tests that were excused before may not fail now; every other condition of the
command exits with 0 in a sandbox of its own; and only then, since it takes as long again, the tests run apart from the
product; and last, the command itself, in the user's own words, exits with 0 over the tree that is handed over. If the
verifier flags tampering, or if no test passes, the goal is not reached.
"""

from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from gametape.core.task import TaskTests
from gametape.core.verdict import Flag
from gametape.desk.goals.apart_run import ApartRun, run_apart
from gametape.desk.goals.baseline import GoalBaseline, goal_task, prepare_goal_task
from gametape.desk.goals.changed_values import changed_values
from gametape.desk.goals.command_judge import CommandJudge, CommandVerdict
from gametape.desk.goals.deciding_files import FileRoles
from gametape.desk.goals.delivery import deliverable_tree
from gametape.desk.goals.failure_text import check_text, failure_text, first_failure, first_names
from gametape.desk.goals.followed_moves import FollowedMoves, follow_moves
from gametape.desk.goals.goal import Goal
from gametape.desk.goals.minimum_counts import required_tests
from gametape.desk.goals.near_inputs import NearInputs, ask_near_inputs
from gametape.desk.goals.pytest_observation import GoalTestResult, PytestObservation, PytestObserver
from gametape.desk.goals.shell_condition import run_command
from gametape.desk.goals.success_command import SuccessCriterion, own_command
from gametape.desk.goals.suite_companions import find_companions
from gametape.desk.goals.told_files import by_weight
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify import jobs
from gametape.verify.integrity import find_flags
from gametape.verify.preparation import run_processes
from gametape.verify.runner import ZygotePool
from gametape.verify.submission import Submission, read_submission
from gametape.verify.twins.plan import TwinPlan
from gametape.verify.verifier import Verifier
from gametape.verify.verifier_run import parse_report

_EXCUSED = ("skipped", "xfailed")
_MAX_MESSAGE = 1200


@dataclass(frozen=True)
class GoalVerdict:
    """The verdict on one attempt. `feedback` is what the agent is told."""

    reached: bool
    criterion: dict[str, Any]
    tampering: tuple[Flag, ...]
    passed: int
    required: int
    feedback: str
    flaky_reason: str = ""
    """Why the verdict is quarantined: the tests did not give the same result twice."""
    command: CommandVerdict = field(default_factory=CommandVerdict)
    apart: ApartRun = field(default_factory=ApartRun)
    near: NearInputs = field(default_factory=NearInputs)
    held_out: tuple[int, int] | None = None
    """How many of the tests that the agent never sees pass, and of how many; None where they were not run."""
    held_out_apart: ApartRun = field(default_factory=ApartRun)
    changed: tuple[str, ...] = ()
    """Sources that the agent changed or added, where tests decide."""
    companions: tuple[str, ...] = ()
    """Those of them, or data, that only the tests use."""
    compared: dict[str, list[str]] = field(default_factory=dict)
    """Those of them that tests compare with other modules of the product, and these."""
    moves: FollowedMoves = field(default_factory=lambda: FollowedMoves(SourceTree()))
    """What of the check followed moves of the product."""
    values: tuple[str, ...] = ()
    """Flags, tables and the like of the product (`module.name`) that tests read and that have another value."""

    def evidence(self) -> dict[str, Any]:
        """What the verdict rests on, for `assurance.py`."""
        return {
            "apart": len(self.apart.passed),
            "one_process": sorted(self.apart.not_crossing),
            "refuted": sorted(self.apart.refuted),
            "near": {key: [*value] if isinstance(value, tuple) else value for key, value in asdict(self.near).items()},
            "replaced": [*self.command.replaced],
            "removed": [*self.command.removed],
            "read": [*self.command.read],
            "wanted": [*self.command.wanted],
            "golden": [*self.command.golden],
            "fewer_examples": [*self.command.fewer_examples],
            "silenced": [*self.command.silenced],
            "unopened": [*self.command.unopened],
            "accepted": [*self.command.accepted],
            "results": [*self.command.results],
            "unheeded": [*self.command.unheeded],
            "made": [*self.command.made],
            "unread": [*self.command.unread],
            "changed": [*self.changed],
            "companions": [*self.companions],
            "compared": self.compared,
            "values": [*self.values],
            "followed": sorted(self.moves.files),
            "followed_roots": [*self.moves.roots],
            "deleted": [*self.command.deleted],
            "held_out": {"passed": self.held_out[0], "required": self.held_out[1]} if self.held_out else None,
            "held_out_one_process": len(self.held_out_apart.not_crossing),
        }


@dataclass(frozen=True)
class GoalJudge:
    """Judges the attempts of one goal."""

    goal: Goal
    criterion: SuccessCriterion
    start: SourceTree
    baseline: GoalBaseline
    home: Path
    zygotes: ZygotePool = field(default_factory=ZygotePool)

    @property
    def interpreter(self) -> Path | None:
        return Path(self.goal.interpreter) if self.goal.interpreter else None

    @property
    def roles(self) -> FileRoles:
        return FileRoles(self.goal.product, self.goal.pin, tuple(self.baseline.test_paths))

    @property
    def pinned_files(self) -> SourceTree:
        """The files of the check: those that the baseline showed, those that the command names, and those that the user
        pinned."""
        commands = self.criterion.shell_commands
        named = {path for command in commands for path in command.pinned_files(self.start)} - {*self.baseline.product}
        said = self.start.under(list(self.goal.pin)) if self.goal.pin else SourceTree()
        product = self.start.under(list(self.goal.product)) if self.goal.product else SourceTree()
        return self.start.only(({*named, *self.baseline.pinned} - {*product}) | {*said})

    @property
    def forbidden_files(self) -> set[str]:
        """Files that may not be added, because they would be used in place of the pinned ones."""
        return {path for command in self.criterion.shell_commands for path in command.forbidden_files(self.start)}

    def _judge_commands(self, submission: Submission) -> CommandVerdict:
        judge = CommandJudge(
            self.criterion.shell_commands,
            self.start,
            submission.loaded_task,
            self.baseline.deciding_files,
            frozenset(self.pinned_files),
            frozenset(self.forbidden_files),
            self.roles,
            frozenset(self.baseline.written),
            frozenset(self.baseline.named_missing),
            frozenset(self.baseline.looked_for),
            frozenset(self.baseline.golden),
        )
        changes = submission.workspace.only({*self.pinned_files, *self.forbidden_files})
        removed = {*self.pinned_files} - {*submission.workspace}
        suite = submission.loaded_task.suite
        return judge.judge(changes.overlaid_on(suite.overlaid_on(submission.sources)).without(removed))

    def task(self, more: tuple[str, ...] = ()) -> LoadedTask:
        """The task with every required test: those that the baseline selects, and `more`."""
        excused = set(self.baseline.excused(self.goal.strict))
        passing = self.baseline.tests("passed")
        others = [test for test in self.baseline.results if test not in excused and test not in set(passing)]
        tests = TaskTests(fail_to_pass=[*dict.fromkeys((*others, *more))], pass_to_pass=passing)
        goal = self.goal
        return goal_task(goal.goal_id, goal.instruction, self.start, self.baseline, self.interpreter, tests)

    def judge(self, workspace: Path) -> GoalVerdict:
        """Judge a workspace in which no process runs any more."""
        submission = read_submission(self.task(), workspace)
        moves = self._follow_moves(submission)
        if moves.files.files or moves.roots:
            return replace(self._following(moves)._judge(workspace), moves=moves)
        return self._judge(workspace)

    def _follow_moves(self, submission: Submission) -> FollowedMoves:
        baseline = self.baseline
        check = [*baseline.test_paths, *(path for path in baseline.pinned if path.endswith(".py"))]
        moves = follow_moves(self.start, submission.workspace, check, baseline.import_roots)
        said = {*moves.files.under(list(self.goal.pin))} if self.goal.pin else set()
        return FollowedMoves(moves.files.without(said), moves.roots if self.criterion.pytest_runs else ())

    def _following(self, moves: FollowedMoves) -> "GoalJudge":
        """The judge for whom the check is as it is after moves of the product. What a test showed before counts for
        nothing where its file is another one."""
        baseline = self.baseline
        files = {*moves.files}
        plan = TwinPlan.from_json(baseline.plan)
        plan = TwinPlan(tuple(twin for twin in plan.validated if twin.file not in files))
        results: dict[str, GoalTestResult] = {
            test: "failed" if result == "passed" and jobs.file_of(test) in files else result
            for test, result in baseline.results.items()
        }
        update = {"import_roots": [*baseline.import_roots, *moves.roots], "plan": plan.to_json(), "results": results}
        start = moves.files.overlaid_on(self.start)
        return replace(self, start=start, baseline=baseline.model_copy(update=update))

    def _judge(self, workspace: Path) -> GoalVerdict:
        task = self.task()
        submission = read_submission(task, workspace)
        tree = self._judged_tree(submission)
        observed = self._observe(tree)
        judged = self._judge_commands(submission)
        if self.criterion.pytest_runs:
            return self._judge_tests(workspace, submission, observed, judged)
        tampering = (*find_flags(submission, []), *_command_file_flags(judged))
        reached = not tampering and judged.succeeded
        exit_code = first_failure(judged.exit_codes)
        return GoalVerdict(
            reached=reached,
            criterion=_criterion(exit_code, None, 0, 0, PytestObservation()),
            tampering=tampering,
            passed=judged.exit_codes.count(0),
            required=len(judged.exit_codes),
            feedback="" if reached else f"The command ended with exit code {exit_code}.{check_text(judged)}",
            command=judged,
        )

    def _judge_tests(
        self, workspace: Path, submission: Submission, observed: PytestObservation, judged: CommandVerdict
    ) -> GoalVerdict:
        new = [test for test in (*observed.tests_with("passed"), *observed.tests_with("failed")) if self._is_new(test)]
        unread = required_tests(self.baseline.minimum_counts(self.goal.strict), filter(self._is_new, observed.results))
        task = self.task(tuple(dict.fromkeys((*unread, *new))))
        if not task.task.tests.every:
            task = self.task(tuple(observed.tests_with("passed")))
        prepared = prepare_goal_task(task, self.baseline)
        with Verifier(task, self.home, self.zygotes, keep_verdicts=False, prepared=prepared) as verifier:
            verdict = verifier.verify(workspace, "train")
        failing = self._excused_that_fail(submission)
        tampering = (*verdict.integrity, *_command_file_flags(judged), *self._lost_test_flags(observed))
        unreadable = {file for files in self.baseline.files for file in files} & {*observed.broken}
        passed = verdict.tests.passed
        reached = verdict.passed and passed > 0 and not (tampering or failing or unreadable) and judged.succeeded
        apart, near = ApartRun(), NearInputs()
        if reached:
            apart = run_apart(prepared, submission.sources, task.task.tests.every, self.zygotes, self.baseline.apart)
            reached = not apart.refuted
        own_failure = self._own_failure(task, workspace, judged) if reached else ""
        reached = reached and not own_failure
        if reached:
            before = self.start.without({*task.suite})
            near = ask_near_inputs(task, submission.sources, before, apart.passed, self.zygotes)
        companions = find_companions(self.start, self.baseline.test_paths, self.baseline.import_roots)
        changed = {*submission.changed_sources, *submission.removed_files} - {*task.suite}
        changed = {path for path in changed if ".git" not in path.split("/")}
        exit_code = 0 if reached else first_failure(judged.exit_codes) or 1
        return GoalVerdict(
            reached=reached,
            criterion=_criterion(exit_code, len(observed.collected), self.baseline.collected, passed, observed),
            tampering=tampering,
            passed=passed - len(apart.refuted),
            required=verdict.tests.expected,
            feedback="\n\n".join(filter(None, (failure_text(verdict, failing, judged, apart), own_failure))),
            flaky_reason="; ".join(signal.detail for signal in verdict.signals) if verdict.quarantined else "",
            command=judged,
            apart=apart,
            near=near,
            changed=tuple(by_weight(changed, self.start, submission.workspace, companions.own)),
            companions=tuple(sorted(companions.own & changed)),
            compared=companions.compared_with(changed),
            values=tuple(changed_values(self.start, submission.sources, self.baseline.test_paths)),
        )

    def _own_failure(self, task: LoadedTask, workspace: Path, judged: CommandVerdict) -> str:
        """What the agent is told if the user's own command fails over the tree that would be handed over."""
        pinned = self.start.only({*self.pinned_files, *judged.replaced})
        tree, _ = deliverable_tree(task, workspace, pinned, {*judged.removed})
        for run in self.criterion.pytest_runs:
            result = run_command(own_command(run, self.baseline.import_roots), tree, task).result
            if result.exit_code != 0:
                output = (result.stdout + result.stderr).strip()[-_MAX_MESSAGE:]
                return f"The command itself ends with exit code {result.exit_code} in the finished workspace:\n{output}"
        return ""

    def _is_new(self, test: str) -> bool:
        """Whether the baseline does not have a test of a pinned file: the file could not be collected then, or code
        makes its parameters."""
        return test not in self.baseline.results and test not in self.baseline.deselected

    def _judged_tree(self, submission: Submission) -> SourceTree:
        """The agent's files together with the pinned tests, configuration and command files."""
        return self.pinned_files.overlaid_on(submission.loaded_task.suite.overlaid_on(submission.sources)).without(
            self.forbidden_files
        )

    def _observe(self, tree: SourceTree) -> PytestObservation:
        observer = PytestObserver(self.start, self.interpreter, tuple(self.baseline.import_roots))
        observation = PytestObservation()
        for run, files in zip(self.criterion.pytest_runs, self.baseline.files, strict=True):
            observation.merge(observer.observe(tree, run, files))
        return observation

    def _excused_that_fail(self, submission: Submission) -> list[str]:
        """Tests that were skipped or excused before, and that are now neither that nor passing."""
        excused = self.baseline.excused(self.goal.strict)
        if not excused:
            return []
        tests = TaskTests(fail_to_pass=excused, pass_to_pass=[])
        task = goal_task(self.goal.goal_id, "", self.start, self.baseline, self.interpreter, tests)
        prepared = prepare_goal_task(task, self.baseline)
        processes = jobs.plan_processes("excused", task.suite, excused, prepared.file_seconds)
        output = run_processes(prepared, submission.sources, self.zygotes, task.suite, processes)
        report = parse_report(output, processes)
        return [test for test in excused if report.result(test) not in ("passed", "skipped")]

    def _lost_test_flags(self, observed: PytestObservation) -> list[Flag]:
        """Flags for tests of the baseline that are gone, skipped or deselected now: no honest change causes that."""
        before = self.baseline
        readable = [test for test in before.results if jobs.file_of(test) not in observed.broken]
        active = before.tests("passed", "failed")
        lost = (
            ("lost", "no longer collected", [test for test in readable if test not in observed.collected]),
            ("skipped", "now skipped or excused", [test for test in active if observed.results.get(test) in _EXCUSED]),
            ("deselected", "now deselected", [test for test in before.results if test in observed.deselected]),
        )
        return [
            Flag(
                rule=f"tests.{rule}",
                severity="suspect",
                evidence=f"{len(tests)} tests are {what}: {first_names(tests)}",
            )
            for rule, what, tests in lost
            if tests
        ]


def with_held_out(verdict: GoalVerdict, hidden: GoalVerdict) -> GoalVerdict:
    """A verdict on an attempt that satisfies the command, with that on the tests that the agent never sees. The agent
    is told how many of them fail, and nothing else."""
    failing = hidden.required - hidden.passed
    told = f"The command succeeds, but {failing} of {hidden.required} tests that you cannot see do not pass."
    if not failing:
        told = "The command succeeds, but the tests that you cannot see do not accept the result."
    return replace(
        verdict,
        reached=hidden.reached,
        criterion={**verdict.criterion, "exit_code": 0 if hidden.reached else 1},
        tampering=(*verdict.tampering, *hidden.tampering),
        feedback="" if hidden.reached else told,
        flaky_reason=verdict.flaky_reason or hidden.flaky_reason,
        held_out=(hidden.passed, hidden.required),
        held_out_apart=hidden.apart,
    )


def _command_file_flags(judged: CommandVerdict) -> list[Flag]:
    """Flags for files of the check that were changed or added, if the command succeeds with them alone."""
    if not judged.tampered:
        return []
    with_it = "the command succeeds with {} as the agent left it, and not without"
    told = dict.fromkeys((*judged.replaced, *judged.removed), with_it)
    told |= dict.fromkeys(judged.rewritten, "{} is written while the command runs; --product says that it is a result")
    return [
        Flag(rule="runner.command", severity="suspect", file=path, evidence=evidence.format(path))
        for path, evidence in told.items()
    ]


def _criterion(
    exit_code: int, collected: int | None, baseline: int, passed: int, observed: PytestObservation
) -> dict[str, Any]:
    return {
        "exit_code": exit_code,
        "collected": collected,
        "baseline": baseline if collected is not None else None,
        "passed": passed,
        "skipped": len(observed.tests_with("skipped")),
        "xfailed": len(observed.tests_with("xfailed")),
        "deselected": len(observed.deselected),
    }
