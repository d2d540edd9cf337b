"""Whether a goal is reached by what an agent left, and what it is accused of.

Decided are three things, all over the pinned tests and configuration: the verifier runs every test that is demanded,
with twins, so that no process can speak for itself; tests that were excused before may not fail now; every other
condition of the command ends with 0 in a sandbox of its own. An accusation of the verifier's is a no, whatever passed.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gametape.core.task import TaskTests
from gametape.core.verdict import Flag, Verdict
from gametape.desk.goals import shell_condition
from gametape.desk.goals.baseline import GoalBaseline, goal_task, prepare_goal_task
from gametape.desk.goals.goal import Goal
from gametape.desk.goals.minimum_counts import is_placeholder, required_tests
from gametape.desk.goals.pytest_observation import PytestObservation, PytestObserver
from gametape.desk.goals.success_command import SuccessCriterion
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.verify import jobs
from gametape.verify.integrity import find_flags
from gametape.verify.preparation import run_processes
from gametape.verify.runner import ZygotePool
from gametape.verify.submission import Submission, read_submission
from gametape.verify.verifier import Verifier
from gametape.verify.verifier_run import parse_report

_MOST_NAMED = 5
_MOST_TOLD, _LONGEST = 8, 1200


@dataclass(frozen=True)
class GoalVerdict:
    """One attempt, judged. `told` is what the agent may know of it."""

    reached: bool
    criterion: dict[str, Any]
    tampering: tuple[Flag, ...]
    passed: int
    required: int
    feedback: str
    flaky_reason: str = ""
    """Why nothing can be said of an attempt that passed: its tests do not do the same thing twice."""


@dataclass(frozen=True)
class GoalJudge:
    """Judges the attempts of one goal."""

    goal: Goal
    criterion: SuccessCriterion
    start: SourceTree
    baseline: GoalBaseline
    home: Path
    crew: ZygotePool = field(default_factory=ZygotePool)

    @property
    def interpreter(self) -> Path | None:
        return Path(self.goal.interpreter) if self.goal.interpreter else None

    @property
    def pinned_files(self) -> SourceTree:
        """What the command's other conditions do stands in these files."""
        return self.start.only(
            {path for command in self.criterion.shell_commands for path in command.pinned_files(self.start)}
        )

    @property
    def forbidden_files(self) -> set[str]:
        """Files that nobody may add, for they would take the place of these."""
        return {path for command in self.criterion.shell_commands for path in command.forbidden_files(self.start)}

    def task(self, more: tuple[str, ...] = ()) -> LoadedTask:
        """What is demanded: what the baseline selects, and what else was found in its test files."""
        excused = set(self.baseline.excused(self.goal.strict))
        passing = self.baseline.tests("passed")
        others = [test for test in self.baseline.results if test not in excused and test not in set(passing)]
        tests = TaskTests(fail_to_pass=[*dict.fromkeys((*others, *more))], pass_to_pass=passing)
        goal = self.goal
        return goal_task(goal.goal_id, goal.instruction, self.start, self.baseline, self.interpreter, tests)

    def judge(self, workspace: Path) -> GoalVerdict:
        """Of a directory whose processes have ended."""
        bare = self.task()
        attempt = read_submission(bare, workspace)
        tree = self._tree(attempt)
        seen = self._seen(tree)
        codes = [shell_condition.run_command(one, tree, bare).exit_code for one in self.criterion.shell_commands]
        if self.criterion.pytest_runs:
            return self._of_tests(workspace, attempt, seen, codes)
        accused = (*find_flags(attempt, []), *self._faked(attempt))
        reached = not accused and all(code == 0 for code in codes)
        told = "" if reached else f"The command ended with exit code {_worst(codes)}."
        passed = sum(code == 0 for code in codes)
        return GoalVerdict(
            reached, _criterion(_worst(codes), None, 0, 0, PytestObservation()), accused, passed, len(codes), told
        )

    def _of_tests(self, workspace: Path, attempt: Submission, seen: PytestObservation, codes: list[int]) -> GoalVerdict:
        new = [test for test in (*seen.tests_with("passed"), *seen.tests_with("failed")) if self._is_new(test)]
        unread = required_tests(self.baseline.minimum_counts(self.goal.strict), filter(self._is_new, seen.results))
        subject = self.task(tuple(dict.fromkeys((*unread, *new))))
        with Verifier(
            subject, self.home, self.crew, keep_verdicts=False, prepared=prepare_goal_task(subject, self.baseline)
        ) as verifier:
            verdict = verifier.verify(workspace, "train")
        failing = self._excused_that_fail(attempt, subject)
        accused = (*verdict.integrity, *self._faked(attempt), *self._lost(seen))
        sound = not accused and not failing and not _unread(seen, self.baseline) and all(code == 0 for code in codes)
        reached = verdict.passed and sound
        demands = verdict.tests.expected
        return GoalVerdict(
            reached=reached,
            criterion=_criterion(
                0 if reached else _worst(codes) or 1, len(seen.collected), self.baseline.collected,
                verdict.tests.passed, seen,
            ),
            tampering=accused,
            passed=verdict.tests.passed,
            required=demands,
            feedback=_told(verdict, failing, codes),
            flaky_reason="; ".join(signal.detail for signal in verdict.signals) if verdict.quarantined else "",
        )  # fmt: skip

    def _is_new(self, test: str) -> bool:
        """A test of a pinned file that the baseline did not show: it could not be read then, or code makes its rows."""
        return test not in self.baseline.results and test not in self.baseline.deselected

    def _tree(self, attempt: Submission) -> SourceTree:
        """What is run: the agent's files among the pinned tests, configuration and programs of the command."""
        return self.pinned_files.overlaid_on(attempt.loaded_task.suite.overlaid_on(attempt.sources)).without(
            self.forbidden_files
        )

    def _seen(self, tree: SourceTree) -> PytestObservation:
        bench = PytestObserver(self.start, self.interpreter, tuple(self.baseline.import_roots))
        seen = PytestObservation()
        for run, files in zip(self.criterion.pytest_runs, self.baseline.files, strict=True):
            seen.merge(bench.observe(tree, run, files))
        return seen

    def _excused_that_fail(self, attempt: Submission, subject: LoadedTask) -> list[str]:
        """Tests that were skipped or excused before, and that are now neither that nor passing."""
        excused = self.baseline.excused(self.goal.strict)
        if not excused:
            return []
        asked = goal_task(
            subject.task.name, "", self.start, self.baseline, self.interpreter,
            TaskTests(fail_to_pass=excused, pass_to_pass=[]),
        )  # fmt: skip
        prepared = prepare_goal_task(asked, self.baseline)
        steps = jobs.plan_processes("excused", asked.suite, excused, prepared.file_seconds)
        run = parse_report(run_processes(prepared, attempt.sources, self.crew, asked.suite, steps), steps)
        return [test for test in excused if run.result(test) not in ("passed", "skipped")]

    def _faked(self, attempt: Submission) -> list[Flag]:
        """Files that say what the command does, and now say something else, or are new."""
        files = attempt.workspace.files
        changed = [path for path, content in self.pinned_files.files.items() if files.get(path) != content]
        return [
            Flag(rule="runner.command", severity="suspect", file=path, evidence=f"{path} decides what the command does")
            for path in (*changed, *sorted(self.forbidden_files & {*files, *attempt.links}))
        ]

    def _lost(self, seen: PytestObservation) -> list[Flag]:
        """Tests of the baseline that are not there any more, or that are passed over now: no honest change does it."""
        before = self.baseline
        readable = {test for test in before.results if jobs.file_of(test) not in seen.broken}
        gone = [
            test for test in (*before.results, *before.deselected) if test in readable and test not in seen.collected
        ]
        skipped = [
            test for test in before.tests("passed", "failed") if seen.results.get(test) in ("skipped", "xfailed")
        ]
        away = [test for test in before.results if test in seen.deselected]
        named = (("lost", "no longer collected", gone), ("skipped", "now skipped or excused", skipped))
        return [
            Flag(rule=f"tests.{rule}", severity="suspect", evidence=f"{len(tests)} tests are {what}: {_some(tests)}")
            for rule, what, tests in (*named, ("deselected", "now deselected", away))
            if tests
        ]


def _unread(seen: PytestObservation, baseline: GoalBaseline) -> list[str]:
    """Test files that cannot be read: the command would say so."""
    return [file for file in seen.broken if file in {one for files in baseline.files for one in files}]


def _criterion(exit: int, collected: int | None, baseline: int, passed: int, seen: PytestObservation) -> dict[str, Any]:
    return {
        "exit_code": exit,
        "collected": collected,
        "baseline": baseline if collected is not None else None,
        "passed": passed,
        "skipped": len(seen.tests_with("skipped")),
        "xfailed": len(seen.tests_with("xfailed")),
        "deselected": len(seen.deselected),
    }


def _worst(codes: list[int]) -> int:
    """The first that is not 0, as a shell would end."""
    return next((code for code in codes if code != 0), 0)


def _some(tests: list[str]) -> str:
    return ", ".join(tests[:_MOST_NAMED]) + (" and more" if len(tests) > _MOST_NAMED else "")


def _told(verdict: Verdict, failing: list[str], codes: list[int]) -> str:
    """Which tests fail and what they say; nothing of how that is known, nor of any accusation."""
    counts = verdict.tests
    parts = [f"{counts.passed} of {counts.expected} tests that the command needs pass."]
    said: set[str] = set()
    for failure in [one for one in verdict.failures if not is_placeholder(one.test)][:_MOST_TOLD]:
        message = failure.message.strip()[-_LONGEST:]
        parts.append(f"{failure.result}: {failure.test}" + (f"\n{message}" if message and message not in said else ""))
        said.add(message)
    parts += [f"failed: {test}" for test in failing[:_MOST_TOLD]]
    if code := _worst(codes):
        parts.append(f"Another part of the command ended with exit code {code}.")
    return "\n\n".join(parts)
