"""A goal on the terminal while it is pursued, whichever process works on it. Whatever was written is shown as text."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from gametape.agent.recording import text_of
from gametape.cli.live_view import LiveView
from gametape.desk.goals.attempting import TURNS
from gametape.desk.threads.following import Follower
from gametape.watch.words import printable

if TYPE_CHECKING:
    from gametape.core.step import Step
    from gametape.desk.goals.goal import GoalPlace

_MOST_LINES = 8


def follower(place: "GoalPlace") -> Follower:
    """Shows each turn that is recorded from now on, and between two attempts what the agent was told; on stderr."""
    console = Console(stderr=True, highlight=False)
    begun = place.recorded().turns if place.trajectory.exists() else 0
    view = LiveView(TURNS * place.read_goal().attempts, begun, console)

    def show(step: "Step") -> None:
        if step.source == "agent":
            view.show(step)
        elif "after_attempt" in (step.ours.model_extra or {}):
            lines = text_of(step).splitlines()
            more = [f"... {len(lines) - _MOST_LINES} more lines"] if len(lines) > _MOST_LINES else []
            for line in [*lines[:_MOST_LINES], *more]:
                console.print(Text(f"  {printable(line)}", style="yellow"), soft_wrap=True)

    return Follower(place.journal, show)
