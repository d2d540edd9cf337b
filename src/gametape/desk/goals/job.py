"""The job of a goal, from its first attempt to its result, in durable steps."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from gametape.agent.allowed_hosts import network_summary
from gametape.core.errors import BadInput
from gametape.desk.goals.assurance import assurance, assurance_detail, check_files
from gametape.desk.goals.attempt_text import failing_tests, shortcomings_section
from gametape.desk.goals.baseline import GoalBaseline
from gametape.desk.goals.branch import make_branch, repository_problem
from gametape.desk.goals.delivery import apply_result, deliverable_tree, pull_request_text
from gametape.desk.goals.failure_text import NO_TEST_PASSES
from gametape.desk.goals.goal import Goal, GoalDirectory, goal_directory
from gametape.desk.goals.goal_agent import GoalAgent
from gametape.desk.goals.held_out import lay_files
from gametape.desk.goals.history import is_git_file
from gametape.desk.goals.judge import GoalJudge, GoalVerdict, with_held_out
from gametape.desk.goals.progress import ALREADY_HOLDS, GoalProgress
from gametape.desk.goals.success_command import read_command
from gametape.desk.jobs import Desk, JobSteps, Json
from gametape.desk.own_repository import GIT_FILE
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.model_names import resolve_model
from gametape.record.atomic import write_atomically
from gametape.record.source_tree import SourceTree, read_tree
from gametape.sandbox.snapshots.cleanup import remove_tree
from gametape.verify.git_patch import make_git_patch
from gametape.verify.runner import ZygotePool

_OUTCOMES = {
    "reached": "passed",
    ALREADY_HOLDS: "passed",
    "cancelled": "cancelled",
    "budget": "limit",
    "deadline": "limit",
    "attempts": "failed",
}


_SLACK = 10.0
"""How much longer than in the baseline a run of the tests may take in the agent's hands."""


async def run_goal_job(desk: Desk, steps: JobSteps, payload: dict[str, Json]) -> dict[str, Json]:
    """Run the goal that the payload names by its `goal_id`."""
    return await pursue_goal(desk.home, steps, goal_directory(desk.home, str(payload["goal_id"])))


async def pursue_goal(home: Path, steps: JobSteps, directory: GoalDirectory) -> dict[str, Json]:
    """Run attempts until the command is satisfied or a limit is reached; then deliver the result."""
    async with _open_goal_run(home, directory) as run:
        progress = GoalProgress(passed_before=run.before)
        before = await steps.once("start", run.judge_start)
        held_before, progress.evidence_before = before["reached"], before["evidence"]
        run.agent = replace(run.agent, held_before=held_before)
        if held_before and not run.goal.instruction_given:
            progress.hold_already()
            run.agent.record_no_attempt()
        while progress.reason is None:
            number = len(progress.attempts) + 1
            keep = [attempt.checkpoint for attempt in progress.judged_attempts]
            agent_result = await steps.once(f"attempt-{number}", partial(run.agent.attempt, steps.cancelled, keep))
            if agent_result["outcome"] == "error" and not agent_result.get("answered", True):
                progress.break_off(agent_result)
                break
            verdict = await steps.once(f"judge-{number}", partial(run.judge, agent_result["checkpoint"]))
            deadline_passed = run.goal.deadline is not None and await steps.now() >= run.goal.deadline
            progress.add_attempt(agent_result, verdict, run.goal, deadline_passed)
            if progress.reason is None:
                await steps.once(f"told-{number}", partial(run.give_feedback, number, verdict, progress))
        answer = {
            "goal_id": run.goal.goal_id,
            **progress.to_dict(),
            "held_before": held_before,
            "warnings": [*run.agent.warnings(progress.cut_off), *run.criterion_warnings(progress)],
            "pinned": run.pinned,
            "assurance": assurance(run.criterion),
            "assurance_detail": assurance_detail(
                run.goal, run.criterion, run.baseline, progress.evidence, progress.attempts
            ),
            "check_files": check_files(progress.evidence),
            **network_summary(run.goal.hosts, directory.network),
        }
        answer |= await steps.once("result", partial(run.deliver, answer, progress))
        if run.goal.apply and answer["reached"]:
            answer |= await steps.once("apply", run.apply)
        directory.write_result(answer)
        return answer


class _GoalRun:
    """One goal with its baseline, judge, model and agent loaded."""

    def __init__(self, home: Path, directory: GoalDirectory, goal: Goal, zygotes: ZygotePool) -> None:
        self.directory, self.goal = directory, goal
        self.criterion = read_command(goal.success)
        self.start = directory.read_start()
        self.baseline = GoalBaseline.model_validate_json(directory.baseline.read_bytes())
        self._judge = GoalJudge(goal, self.criterion, self.start, self.baseline, home, zygotes)
        self._held_out_judge = self._open_held_out_judge(home, zygotes)
        self.task = self._judge.task()
        self.model = resolve_model(goal.model, home, EgressPolicy(local_only=goal.local_only))
        suite_seconds = _SLACK * sum(self.baseline.seconds.values())
        pinned = tuple(sorted(path for path in self._judge.pinned_files if path not in self.task.suite))
        self.agent = GoalAgent(directory, goal, self.task, self.model, home, pinned=pinned, suite_seconds=suite_seconds)

    def _open_held_out_judge(self, home: Path, zygotes: ZygotePool) -> GoalJudge | None:
        """The judge of the tests that the agent never sees, laid over the same start."""
        if self.goal.held_out is None:
            return None
        command = f"pytest '{self.goal.held_out}'"
        goal = self.goal.model_copy(update={"success": command, "strict": False})
        start = read_tree(self.directory.held_out).overlaid_on(self.start)
        baseline = GoalBaseline.model_validate_json(self.directory.held_out_baseline.read_bytes())
        return GoalJudge(goal, read_command(command), start, baseline, home, zygotes)

    @property
    def pinned(self) -> list[str]:
        """The files that are judged as they were, whatever the agent does with them."""
        return sorted({*self._judge.pinned_files, *self.task.suite})

    @property
    def before(self) -> int:
        """The number of tests, or of conditions, that the untouched workspace passes."""
        codes = sum(code == 0 for code in self.baseline.exit_codes)
        return len(self.baseline.tests("passed")) if self.criterion.pytest_runs else codes

    async def judge_start(self) -> dict[str, Json]:
        """Whether the command succeeds over the untouched workspace. The baseline decides where it does not; what it
        says of success is judged as an attempt would be."""
        if not self.baseline.holds(self.goal.strict):
            return {"reached": False, "evidence": None}
        verdict = await asyncio.to_thread(self._judge_start)
        return {"reached": verdict.reached, "evidence": verdict.evidence()}

    def _judge_start(self) -> GoalVerdict:
        scratch = Path(tempfile.mkdtemp(prefix="gametape-judged-"))
        try:
            _write_tree(self.start, scratch / "workspace")
            return self._judge_workspace(scratch / "workspace")
        finally:
            remove_tree(scratch)

    def _judge_workspace(self, workspace: Path) -> GoalVerdict:
        """Judge by the command, and if it succeeds by the tests that the agent never sees. Of those the agent is told a
        number."""
        verdict = self._judge.judge(workspace)
        if not verdict.reached or self._held_out_judge is None:
            return verdict
        lay_files(read_tree(self.directory.held_out), workspace)
        return with_held_out(verdict, self._held_out_judge.judge(workspace))

    def criterion_warnings(self, progress: GoalProgress) -> list[str]:
        """Why the command can end with 0 and the goal is not reached all the same."""
        passing = any(attempt["criterion"]["passed"] for attempt in progress.attempts)
        active = self.baseline.tests("passed", "failed") or self.baseline.broken
        return [NO_TEST_PASSES] if self.criterion.pytest_runs and not active and not passing else []

    async def judge(self, checkpoint: str) -> dict[str, Json]:
        verdict = _verdict_to_dict(await asyncio.to_thread(self._judge_checkpoint, checkpoint))
        files = {file for selected in self.baseline.files for file in selected}
        return {**verdict, "failing": failing_tests(verdict["told"], files) if not verdict["reached"] else []}

    def _judge_checkpoint(self, checkpoint: str) -> GoalVerdict:
        scratch = Path(tempfile.mkdtemp(prefix="gametape-judged-"))
        try:
            self.agent.export(checkpoint, scratch / "workspace")
            return self._judge_workspace(scratch / "workspace")
        finally:
            remove_tree(scratch)

    async def give_feedback(self, number: int, verdict: dict[str, Json], progress: GoalProgress) -> None:
        checkpoint = progress.checkpoint or self.agent.first_checkpoint()
        await self.agent.give_feedback(number, progress.feedback(verdict), checkpoint)

    async def deliver(self, answer: dict[str, Any], progress: GoalProgress) -> dict[str, Json]:
        return await asyncio.to_thread(self._deliver, answer, progress.checkpoint, progress.evidence or {})

    def _deliver(self, answer: dict[str, Any], checkpoint: str | None, evidence: dict[str, Any]) -> dict[str, Json]:
        """Write the result. Done twice, it is the same."""
        directory = self.directory
        tree, left_out = self.start, list[str]()
        if checkpoint is not None:
            scratch = Path(tempfile.mkdtemp(prefix="gametape-delivered-"))
            try:
                self.agent.export(checkpoint, scratch / "workspace")
                pinned = self.start.only({*self._judge.pinned_files, *evidence.get("replaced", ())})
                followed = {*evidence.get("followed", ())}
                pinned = pinned.without({*evidence.get("accepted", ())} | followed)
                added = {*evidence.get("removed", ())}
                tree, left_out = deliverable_tree(self.task, scratch / "workspace", pinned, added, followed)
                if is_git_file(scratch / "workspace", directory.history):
                    left_out = [path for path in left_out if path != GIT_FILE]
            finally:
                remove_tree(scratch)
        directory.replace_workspace(lambda target: _write_tree(tree, target))
        patch = make_git_patch(self.start, tree)
        write_atomically(directory.patch, patch.encode("utf-8", "surrogateescape"))
        text = pull_request_text(self.goal, self.baseline, answer, self.start, tree, left_out) + shortcomings_section(
            answer
        )
        write_atomically(directory.summary, text.encode())
        made = make_branch(directory, self.goal, self.start, tree, text.splitlines()[0].removeprefix("# "))
        problems = [repository_problem(Path(self.goal.workspace)), made.problem if made else ""]
        outcome = _OUTCOMES.get(answer["reason"], "error")
        self.agent.record_outcomes(bool(answer["reached"]), answer["reason"] in ("reached", "attempts", "budget"))
        record = self.agent.close_record({"outcome": outcome, "reason": answer["reason"], "goal": answer})
        return {
            "branch": made.name if made else None,
            "repository": str(made.repository) if made else None,
            "warnings": [*answer["warnings"], *filter(None, problems)],
            "patch": str(directory.patch.absolute()),
            "summary": str(directory.summary.absolute()),
            "workspace": str(directory.workspace.absolute()),
            "trajectory": str(record),
            "applied": False,
            **self.agent.models_used(),
        }

    async def apply(self) -> dict[str, Json]:
        """Write the result into the workspace, or return why that was refused."""
        try:
            target, after = Path(self.goal.workspace), self.directory.read_workspace()
            changed = await asyncio.to_thread(apply_result, target, self.start, after)
        except BadInput as error:
            return {"applied": False, "not_applied": str(error)}
        return {"applied": True, "changed": changed}


@asynccontextmanager
async def _open_goal_run(home: Path, directory: GoalDirectory) -> AsyncIterator[_GoalRun]:
    with ZygotePool() as zygotes:
        run = _GoalRun(home, directory, directory.read_goal(), zygotes)
        try:
            yield run
        finally:
            await run.model.close()


def _verdict_to_dict(verdict: GoalVerdict) -> dict[str, Json]:
    return {
        "reached": verdict.reached,
        "criterion": verdict.criterion,
        "tampering": [flag.model_dump(mode="json", exclude_none=True) for flag in verdict.tampering],
        "passed": verdict.passed,
        "demanded": verdict.required,
        "told": verdict.feedback,
        "unsettled": verdict.flaky_reason,
        "evidence": verdict.evidence(),
    }


def _write_tree(tree: SourceTree, target: Path) -> None:
    target.mkdir()
    tree.write_to(target)
