"""`gametape feedback`: record what people did with an agent's work."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gametape.cli.shared import AsJson, emit_json

if TYPE_CHECKING:
    from gametape.core.feedback import Feedback

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def feedback(
    trajectory: Annotated[Path, typer.Argument(help="A trajectory, finished or not.")],
    kept: Annotated[bool, typer.Option("--kept", help="The work was kept.")] = False,
    reverted: Annotated[bool, typer.Option("--reverted", help="The work was reverted.")] = False,
    accepted: Annotated[bool, typer.Option("--accepted", help="The work was accepted, as a pull request is.")] = False,
    rejected: Annotated[bool, typer.Option("--rejected", help="The work was rejected.")] = False,
    from_git: Annotated[
        Path | None, typer.Option(help="Measure in this repository how many of its lines are still there.")
    ] = None,
    patch: Annotated[
        Path | None, typer.Option(help="With --from-git: the patch, if it is not beside the trajectory.")
    ] = None,
    note: Annotated[str, typer.Option(help="The reason.")] = "",
    as_json: AsJson = False,
) -> None:
    """Record in TRAJECTORY what people did with the work: training can add it to the reward.

    Exits 1 if --from-git does not find the patch in the history: then nothing is written.

    \b
    Examples:
      gametape feedback ~/goals/goal-20261115-3f9a2c/trajectory.json --accepted --note "merged as it was"
      gametape feedback ~/goals/goal-20261115-3f9a2c/trajectory.json --from-git .
    """
    from gametape.desk.feedback import add_feedback
    from gametape.desk.threads.lifecycle import record_outcome

    choices = {"kept": kept, "reverted": reverted, "accepted": accepted, "rejected": rejected}
    if sum([*choices.values(), from_git is not None]) != 1:
        raise typer.BadParameter("give exactly one of --kept, --reverted, --accepted, --rejected and --from-git")
    if patch is not None and from_git is None:
        raise typer.BadParameter("--patch goes with --from-git")
    kind = next((kind for kind, chosen in choices.items() if chosen), "")
    entry = _measured_feedback(trajectory, from_git, patch, note) if from_git else _stated_feedback(kind, note)
    if entry is None:
        if as_json:
            emit_json({"trajectory": str(trajectory.absolute()), "landed": False, "feedback": []})
        typer.echo("gametape: the patch is not in the history of this repository", err=True)
        raise typer.Exit(1)
    entries = add_feedback(trajectory, entry)
    record_outcome(trajectory, entry.value > 0)
    if as_json:
        plain = [item.model_dump(mode="json", exclude_defaults=True) for item in entries]
        emit_json({"trajectory": str(trajectory.absolute()), "feedback": plain, "kept_share": entry.share})
    else:
        share = f" ({entry.share:.0%} of the added lines)" if entry.share is not None else ""
        typer.echo(f"{trajectory}: {entry.kind}{share}")


def _stated_feedback(kind: str, note: str) -> "Feedback":
    from gametape.core.feedback import Feedback
    from gametape.desk.feedback import utc_timestamp

    return Feedback.model_validate({"kind": kind, "time": utc_timestamp(), "note": note})


def _measured_feedback(trajectory: Path, repository: Path, patch: Path | None, note: str) -> "Feedback | None":
    from gametape.core.feedback import Feedback
    from gametape.desk.feedback import patch_survival, read_patch, utc_timestamp

    survival = patch_survival(read_patch(patch or trajectory.with_name("patch.diff")), repository)
    if survival is None:
        return None
    return Feedback(kind="survived", time=utc_timestamp(), note=note, share=survival.share, commit=survival.commit)
