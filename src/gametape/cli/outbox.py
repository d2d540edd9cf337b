"""`gametape outbox`: decide on messages that agents have drafted."""

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gametape.cli.shared import AsJson, Database, Home, emit, emit_json, open_desk

if TYPE_CHECKING:
    from gametape.desk.outbox import OutboxDraft

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Approve or reject messages that agents have drafted.",
)

Name = Annotated[str, typer.Argument(metavar="DRAFT", help="The id, as `outbox list` shows it.")]


@app.command("list")
def list_(
    include_decided: Annotated[bool, typer.Option("--all", help="Also those that are decided.")] = False,
    home: Home = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """List drafts that wait for a decision.

    Example: gametape outbox list
    """
    from gametape.watch.text_features import printable

    waiting = ("draft", "approved", "sending")
    with open_desk(home, database) as desk:
        drafts = [draft for draft in desk.outbox.list() if include_decided or draft.state in waiting]
    if as_json:
        emit_json({"drafts": [_draft_to_dict(draft) for draft in drafts]})
        return
    for draft in drafts:
        typer.echo(f"{draft.id}  {draft.state:8}  {draft.origin}  to {printable(draft.recipient)}")
        typer.echo(f"    {printable(draft.subject)}")
        for line in draft.body.splitlines():
            typer.echo(f"    | {printable(line)}")
    if not drafts:
        typer.echo("no draft waits")


@app.command()
def approve(
    name: Name,
    again: Annotated[bool, typer.Option("--again", help="Send it although it may have been sent.")] = False,
    home: Home = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Send a draft: to the command or webhook of desk.toml, else write it to a file under HOME/outbox.

    The answer says which. Exit code 1 if it was rejected before or could not be sent; approving it again tries again,
    with the same key. Exit code 1 as well if an earlier try was cut off while it sent: then --again is needed.

    Example: gametape outbox approve draft-20261115-3f9a2c
    """

    from gametape.watch.text_features import printable

    with open_desk(home, database) as desk:
        before = desk.outbox.get(name).state
        draft = asyncio.run(desk.outbox.approve(name, again))
        delivery = desk.outbox.delivery_of(draft)
    told = f"{draft.id}: approved before, {delivery}" if before == "sent" else f"{draft.id}: approved, {delivery}"
    emit(_draft_to_dict(draft) | {"delivery": delivery}, as_json, printable(told))


@app.command()
def reject(
    name: Name,
    note: Annotated[str, typer.Option(help="The reason.")] = "",
    home: Home = None,
    database: Database = None,
    as_json: AsJson = False,
) -> None:
    """Reject a draft; it is kept, and never sent. Exit code 1 if it was approved before.

    Example: gametape outbox reject draft-20261115-3f9a2c --note "not now"
    """

    with open_desk(home, database) as desk:
        _show(asyncio.run(desk.outbox.reject(name, note)), as_json)


def _show(draft: "OutboxDraft", as_json: bool) -> None:

    emit(_draft_to_dict(draft), as_json, f"{draft.id}: {draft.state}")


def _draft_to_dict(draft: "OutboxDraft") -> dict[str, Any]:

    return asdict(draft)
