"""A goal from its first turn to its result, in steps that are each kept once they are done."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from gametape.core.errors import BadInput
from gametape.desk.errands import Desk, Json, Steps
from gametape.desk.goals.applying import apply
from gametape.desk.goals.attempting import Office
from gametape.desk.goals.baseline import Baseline
from gametape.desk.goals.branch import make_branch
from gametape.desk.goals.command import read_command
from gametape.desk.goals.delivering import delivered
from gametape.desk.goals.goal import Goal, GoalPlace, place_of
from gametape.desk.goals.judging import Judge, Judgement
from gametape.desk.goals.progress import Story
from gametape.desk.goals.summary import summary
from gametape.engines.naming import resolve
from gametape.engines.perimeter import Perimeter
from gametape.record.atomic import write_atomically
from gametape.sandbox.snapshots.sweep import remove_tree
from gametape.verify.crew import Crew
from gametape.verify.patch import unified
from gametape.verify.tree import Tree

_OUTCOMES = {
    "reached": "passed",
    "cancelled": "cancelled",
    "budget": "limit",
    "deadline": "limit",
    "attempts": "failed",
}


async def work(desk: Desk, steps: Steps, order: dict[str, Json]) -> dict[str, Json]:
    """The errand of a goal: `order` names it, its directory holds the rest."""
    return await pursue(desk.home, steps, place_of(desk.home, str(order["goal_id"])))


async def pursue(home: Path, steps: Steps, place: GoalPlace) -> dict[str, Json]:
    """Attempt after attempt until the command is satisfied or something is used up; then the result."""
    async with _case(home, place) as case:
        story = Story(before=case.before)
        while story.reason is None:
            number = len(story.attempts) + 1
            keep = [one.checkpoint for one in story.tried]
            ended = await steps.once(f"attempt-{number}", partial(case.office.attempt, steps.cancelled, keep))
            judged = await steps.once(f"judge-{number}", partial(case.judge, ended["checkpoint"]))
            late = case.goal.deadline is not None and await steps.now() >= case.goal.deadline
            story.take(ended, judged, case.goal, late)
            if story.reason is None:
                await steps.once(f"told-{number}", partial(case.tell, number, judged, story))
        answer = {
            "goal_id": case.goal.goal_id,
            **story.answer(),
            "assurance": "exit-code" if case.criterion.others else "verifier",
        }
        answer |= await steps.once("result", partial(case.deliver, answer, story))
        if case.goal.apply and answer["reached"]:
            answer |= await steps.once("apply", case.apply)
        place.write_result(answer)
        return answer


class _Case:
    """One goal with everything loaded."""

    def __init__(self, home: Path, place: GoalPlace, goal: Goal, crew: Crew) -> None:
        self.place, self.goal = place, goal
        self.criterion = read_command(goal.success)
        self.start = place.read_start()
        self.baseline = Baseline.model_validate_json(place.baseline.read_bytes())
        self._judge = Judge(goal, self.criterion, self.start, self.baseline, home, crew)
        self.subject = self._judge.subject()
        self.model = resolve(goal.model, home, Perimeter(local_only=goal.local_only))
        self.office = Office(place, goal, self.subject, self.model, home)

    @property
    def before(self) -> int:
        """How much the pinned tree passes by itself."""
        codes = sum(code == 0 for code in self.baseline.exit_codes)
        return len(self.baseline.tests("passed")) if self.criterion.runs else codes

    async def judge(self, checkpoint: str) -> dict[str, Json]:
        return _plain(await asyncio.to_thread(self._in_scratch, checkpoint))

    def _in_scratch(self, checkpoint: str) -> Judgement:
        scratch = Path(tempfile.mkdtemp(prefix="gametape-judged-"))
        try:
            self.office.export(checkpoint, scratch / "workspace")
            return self._judge.judge(scratch / "workspace")
        finally:
            remove_tree(scratch)

    async def tell(self, number: int, judged: dict[str, Json], story: Story) -> None:
        checkpoint = story.checkpoint or self.office.first()
        await self.office.tell(number, story.feedback(judged), checkpoint)

    async def deliver(self, answer: dict[str, Any], story: Story) -> dict[str, Json]:
        return await asyncio.to_thread(self._deliver, answer, story.checkpoint)

    def _deliver(self, answer: dict[str, Any], checkpoint: str | None) -> dict[str, Json]:
        """Write down everything that stays. Done twice, it is the same."""
        place = self.place
        tree, left_out = self.start, list[str]()
        if checkpoint is not None:
            scratch = Path(tempfile.mkdtemp(prefix="gametape-delivered-"))
            try:
                self.office.export(checkpoint, scratch / "workspace")
                tree, left_out = delivered(self.subject, scratch / "workspace", self._judge.pinned)
            finally:
                remove_tree(scratch)
        place.replace_workspace(lambda target: _write_tree(tree, target))
        patch = unified(self.start, tree)
        write_atomically(place.patch, patch.encode("utf-8", "surrogateescape"))
        text = summary(self.goal, self.baseline, answer, self.start, tree, left_out)
        write_atomically(place.summary, text.encode())
        name = make_branch(place, self.goal, self.start, tree, text.splitlines()[0].removeprefix("# "))
        outcome = _OUTCOMES.get(answer["reason"], "error")
        record = self.office.close({"outcome": outcome, "reason": answer["reason"], "goal": answer})
        return {
            "branch": name,
            "repository": (self.goal.workspace if self.goal.head else str(place.repository)) if name else None,
            "patch": str(place.patch.absolute()),
            "summary": str(place.summary.absolute()),
            "workspace": str(place.workspace.absolute()),
            "trajectory": str(record),
            "applied": False,
        }

    async def apply(self) -> dict[str, Json]:
        """A refusal is an answer too: the result stays where it is."""
        try:
            target, after = Path(self.goal.workspace), self.place.read_tree()
            changed = await asyncio.to_thread(apply, target, self.start, after)
        except BadInput as error:
            return {"applied": False, "not_applied": str(error)}
        return {"applied": True, "changed": changed}


@asynccontextmanager
async def _case(home: Path, place: GoalPlace) -> AsyncIterator[_Case]:
    with Crew() as crew:
        case = _Case(home, place, place.read_goal(), crew)
        try:
            yield case
        finally:
            await case.model.close()


def _plain(judgement: Judgement) -> dict[str, Json]:
    return {
        "reached": judgement.reached,
        "criterion": judgement.criterion,
        "tampering": [flag.model_dump(mode="json", exclude_none=True) for flag in judgement.tampering],
        "passed": judgement.passed,
        "demanded": judgement.demanded,
        "told": judgement.told,
        "unsettled": judgement.unsettled,
    }


def _write_tree(tree: Tree, target: Path) -> None:
    target.mkdir()
    tree.write_to(target)
