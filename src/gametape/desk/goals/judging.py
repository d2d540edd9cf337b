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
from gametape.desk.goals import exit_code
from gametape.desk.goals.baseline import Baseline
from gametape.desk.goals.command import Criterion
from gametape.desk.goals.floors import demanded, is_made_up
from gametape.desk.goals.goal import Goal
from gametape.desk.goals.observed import Bench, Observed
from gametape.desk.goals.subject import prepared_for, subject_of
from gametape.verify import jobs
from gametape.verify.attempt import Attempt
from gametape.verify.crew import Crew
from gametape.verify.export import export
from gametape.verify.integrity import flags
from gametape.verify.observe import observe
from gametape.verify.pipeline import Verifier
from gametape.verify.preparation import run_steps
from gametape.verify.subject import Subject
from gametape.verify.tree import Tree

_MOST_NAMED = 5
_MOST_TOLD, _LONGEST = 8, 1200


@dataclass(frozen=True)
class Judgement:
    """One attempt, judged. `told` is what the agent may know of it."""

    reached: bool
    criterion: dict[str, Any]
    tampering: tuple[Flag, ...]
    passed: int
    demanded: int
    told: str
    unsettled: str = ""
    """Why nothing can be said of an attempt that passed: its tests do not do the same thing twice."""


@dataclass(frozen=True)
class Judge:
    """Judges the attempts of one goal."""

    goal: Goal
    criterion: Criterion
    start: Tree
    baseline: Baseline
    home: Path
    crew: Crew = field(default_factory=Crew)

    @property
    def interpreter(self) -> Path | None:
        return Path(self.goal.interpreter) if self.goal.interpreter else None

    @property
    def pinned(self) -> Tree:
        """What the command's other conditions do stands in these files."""
        return self.start.only({path for command in self.criterion.others for path in command.pinned(self.start)})

    @property
    def barred(self) -> set[str]:
        """Files that nobody may add, for they would take the place of these."""
        return {path for command in self.criterion.others for path in command.barred(self.start)}

    def subject(self, more: tuple[str, ...] = ()) -> Subject:
        """What is demanded: what the baseline selects, and what else was found in its test files."""
        excused = set(self.baseline.excused(self.goal.strict))
        passing = self.baseline.tests("passed")
        others = [test for test in self.baseline.results if test not in excused and test not in set(passing)]
        tests = TaskTests(fail_to_pass=[*dict.fromkeys((*others, *more))], pass_to_pass=passing)
        goal = self.goal
        return subject_of(goal.goal_id, goal.instruction, self.start, self.baseline, self.interpreter, tests)

    def judge(self, workspace: Path) -> Judgement:
        """Of a directory whose processes have ended."""
        bare = self.subject()
        attempt = export(bare, workspace)
        tree = self._tree(attempt)
        seen = self._seen(tree)
        codes = [exit_code.run_command(one, tree, bare).exit_code for one in self.criterion.others]
        if self.criterion.runs:
            return self._of_tests(workspace, attempt, seen, codes)
        accused = (*flags(attempt, []), *self._faked(attempt))
        reached = not accused and all(code == 0 for code in codes)
        told = "" if reached else f"The command ended with exit code {_worst(codes)}."
        passed = sum(code == 0 for code in codes)
        return Judgement(reached, _criterion(_worst(codes), None, 0, 0, Observed()), accused, passed, len(codes), told)

    def _of_tests(self, workspace: Path, attempt: Attempt, seen: Observed, codes: list[int]) -> Judgement:
        new = [test for test in (*seen.became("passed"), *seen.became("failed")) if self._is_new(test)]
        unread = demanded(self.baseline.least(self.goal.strict), filter(self._is_new, seen.results))
        subject = self.subject(tuple(dict.fromkeys((*unread, *new))))
        with Verifier(
            subject, self.home, self.crew, keep_verdicts=False, prepared=prepared_for(subject, self.baseline)
        ) as verifier:
            verdict = verifier.verify(workspace, "train")
        failing = self._excused_that_fail(attempt, subject)
        accused = (*verdict.integrity, *self._faked(attempt), *self._lost(seen))
        sound = not accused and not failing and not _unread(seen, self.baseline) and all(code == 0 for code in codes)
        reached = verdict.passed and sound
        demands = verdict.tests.expected
        return Judgement(
            reached=reached,
            criterion=_criterion(
                0 if reached else _worst(codes) or 1, len(seen.collected), self.baseline.collected,
                verdict.tests.passed, seen,
            ),
            tampering=accused,
            passed=verdict.tests.passed,
            demanded=demands,
            told=_told(verdict, failing, codes),
            unsettled="; ".join(signal.detail for signal in verdict.signals) if verdict.quarantined else "",
        )  # fmt: skip

    def _is_new(self, test: str) -> bool:
        """A test of a pinned file that the baseline did not show: it could not be read then, or code makes its rows."""
        return test not in self.baseline.results and test not in self.baseline.deselected

    def _tree(self, attempt: Attempt) -> Tree:
        """What is run: the agent's files among the pinned tests, configuration and programs of the command."""
        return self.pinned.over(attempt.subject.suite.over(attempt.sources)).without(self.barred)

    def _seen(self, tree: Tree) -> Observed:
        bench = Bench(self.start, self.interpreter, tuple(self.baseline.import_roots))
        seen = Observed()
        for run, files in zip(self.criterion.runs, self.baseline.files, strict=True):
            seen.take(bench.observe(tree, run, files))
        return seen

    def _excused_that_fail(self, attempt: Attempt, subject: Subject) -> list[str]:
        """Tests that were skipped or excused before, and that are now neither that nor passing."""
        excused = self.baseline.excused(self.goal.strict)
        if not excused:
            return []
        asked = subject_of(
            subject.task.name, "", self.start, self.baseline, self.interpreter,
            TaskTests(fail_to_pass=excused, pass_to_pass=[]),
        )  # fmt: skip
        prepared = prepared_for(asked, self.baseline)
        steps = jobs.steps("excused", asked.suite, excused, prepared.seconds)
        run = observe(run_steps(prepared, attempt.sources, self.crew, asked.suite, steps), steps)
        return [test for test in excused if run.result(test) not in ("passed", "skipped")]

    def _faked(self, attempt: Attempt) -> list[Flag]:
        """Files that say what the command does, and now say something else, or are new."""
        files = attempt.workspace.files
        changed = [path for path, content in self.pinned.files.items() if files.get(path) != content]
        return [
            Flag(rule="runner.command", severity="suspect", file=path, evidence=f"{path} decides what the command does")
            for path in (*changed, *sorted(self.barred & {*files, *attempt.links}))
        ]

    def _lost(self, seen: Observed) -> list[Flag]:
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


def _unread(seen: Observed, baseline: Baseline) -> list[str]:
    """Test files that cannot be read: the command would say so."""
    return [file for file in seen.broken if file in {one for files in baseline.files for one in files}]


def _criterion(exit: int, collected: int | None, baseline: int, passed: int, seen: Observed) -> dict[str, Any]:
    return {
        "exit_code": exit,
        "collected": collected,
        "baseline": baseline if collected is not None else None,
        "passed": passed,
        "skipped": len(seen.became("skipped")),
        "xfailed": len(seen.became("xfailed")),
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
    for failure in [one for one in verdict.failures if not is_made_up(one.test)][:_MOST_TOLD]:
        message = failure.message.strip()[-_LONGEST:]
        parts.append(f"{failure.result}: {failure.test}" + (f"\n{message}" if message and message not in said else ""))
        said.add(message)
    parts += [f"failed: {test}" for test in failing[:_MOST_TOLD]]
    if code := _worst(codes):
        parts.append(f"Another part of the command ended with exit code {code}.")
    return "\n\n".join(parts)
