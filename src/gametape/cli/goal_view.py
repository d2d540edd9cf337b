"""Shows the progress of a goal on the terminal, whichever process works on it. Agents' output is plain text."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from gametape.agent.recorder import step_text
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
    begun = directory.load_trajectory().turns if directory.trajectory.exists() else 0
    view = LiveView(max_turns_per_attempt(goal) * goal.attempts, begun, console)

    def show(step: "Step") -> None:
        if step.source == "agent":
            view.show(step)
        elif "after_attempt" in (step.gametape_extra.model_extra or {}):
            lines = step_text(step).splitlines()
            more = [f"... {len(lines) - _MOST_LINES} more lines"] if len(lines) > _MOST_LINES else []
            for line in [*lines[:_MOST_LINES], *more]:
                console.print(Text(f"  {printable(line)}", style="yellow"), soft_wrap=True)

    return JournalFollower(directory.journal, show)
