"""What is known of a goal's check before the agent starts, for a person to read and to correct."""

from gametape.desk.goals.baseline import GoalBaseline
from gametape.desk.goals.goal import GoalDirectory
from gametape.desk.goals.judge import GoalJudge
from gametape.desk.goals.success_command import read_command

_MAX_NAMED = 12


def check_lines(directory: GoalDirectory) -> list[str]:
    """The pinned files, the product, and the tests that the agent never sees, in a few lines."""
    goal, start = directory.read_goal(), directory.read_start()
    baseline = GoalBaseline.model_validate_json(directory.baseline.read_bytes())
    judge = GoalJudge(goal, read_command(goal.success), start, baseline, directory.root)
    lines = [_line("pinned", sorted({*judge.pinned_files, *judge.task().suite}))]
    if baseline.product:
        lines.append(_line("product", baseline.product))
    if judge.criterion.shell_commands and not baseline.product and judge.pinned_files:
        lines.append("product: none of the files that the command read; if one has to be changed, give it as --product")
    if goal.held_out:
        hidden = GoalBaseline.model_validate_json(directory.held_out_baseline.read_bytes())
        unread = f", {len(hidden.broken)} files that cannot be read yet" if hidden.broken else ""
        passing = f"{len(hidden.tests('passed'))} of {len(hidden.results)} tests pass before"
        lines.append(f"held out: {passing}{unread}")
    return lines


def _line(what: str, paths: list[str]) -> str:
    more = f" and {len(paths) - _MAX_NAMED} more" if len(paths) > _MAX_NAMED else ""
    return f"{what}: {', '.join(paths[:_MAX_NAMED]) or 'nothing'}{more}"
