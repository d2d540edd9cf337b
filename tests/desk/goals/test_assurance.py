"""What the answer says of the verdict it rests on."""

from gametape.desk.goals.assurance import assurance_detail
from gametape.desk.goals.baseline import GoalBaseline
from gametape.desk.goals.goal import Goal
from gametape.desk.goals.success_command import read_command


def _said(attempts: list[dict[str, object]]) -> str:
    goal = Goal(goal_id="goal", workspace="/", success="make", model="", instruction="", created=0.0)
    baseline = GoalBaseline(test_paths=["tests"], import_roots=["."], files=[])
    return assurance_detail(goal, read_command("make"), baseline, None, attempts)


def test_attempts_that_are_no_better_than_the_start_were_judged_all_the_same() -> None:
    flagged: dict[str, object] = {"tampering": [{"rule": "runner.command"}]}
    assert _said([]) == "Nothing was judged."
    assert _said([{"tampering": []}]) == "None of 1 judged attempts is better than the start, which is handed over."
    assert _said([flagged, {"tampering": []}]).endswith("1 of them tampered with the check: runner.command.")
