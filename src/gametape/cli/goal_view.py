"""Shows the progress of a goal on the terminal, whichever process works on it. Agents' output is plain text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from gametape.agent.recorded_steps import step_text
from gametape.desk.goals.goal_agent import max_turns_per_attempt
from gametape.desk.threads.journal_follower import JournalFollower
from gametape.terminal.rollout_view import LiveView
from gametape.watch.text_features import printable

if TYPE_CHECKING:
    from gametape.core.step import Step
    from gametape.desk.goals.goal import GoalDirectory

_MOST_LINES = 8


def goal_follower(directory: "GoalDirectory") -> JournalFollower:
    """Follows a goal's journal: shows each new turn, and the feedback between attempts, on stderr."""
    console = Console(stderr=True, highlight=False)
    goal = directory.read_goal()
    view = LiveView(max_turns_per_attempt(goal), console=console)

    def begin(number: int, turns: int = 0) -> None:
        view.begin(f"attempt {number} of {goal.attempts}" if goal.attempts > 1 else "", turns)

    begin(*_begun(directory.load_trajectory().steps if directory.trajectory.exists() else []))

    def show(step: "Step") -> None:
        if step.source == "agent":
            view.show(step)
        elif number := _judged(step):
            begin(number + 1)
            lines = step_text(step).splitlines()
            more = [f"... {len(lines) - _MOST_LINES} more lines"] if len(lines) > _MOST_LINES else []
            for line in [*lines[:_MOST_LINES], *more]:
                console.print(Text(f"  {printable(line)}", style="yellow"), soft_wrap=True)

    return JournalFollower(directory.journal, show)


def _judged(step: "Step") -> int:
    """The number of the attempt that a step is the feedback on, or 0."""
    return int((step.gametape_extra.model_extra or {}).get("after_attempt") or 0)


def _begun(steps: "Sequence[Step]") -> tuple[int, int]:
    """The number of the present attempt, and its turns so far."""
    ends = [at for at, step in enumerate(steps) if _judged(step)]
    present = steps[ends[-1] + 1 :] if ends else steps
    return (_judged(steps[ends[-1]]) if ends else 0) + 1, sum(step.source == "agent" for step in present)
