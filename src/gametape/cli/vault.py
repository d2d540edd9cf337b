"""`gametape vault`: read and review the notes of agents."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gametape.cli.shared import AsJson, Home, emit, emit_json
from gametape.record.home import home_directory

if TYPE_CHECKING:
    from gametape.desk.vault.vault import Vault

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
    help="Read and review the notes of agents.",
)

VaultDir = Annotated[Path | None, typer.Option("--vault", metavar="DIR", help="The vault (default: HOME/vault).")]


@app.command()
def init(vault: VaultDir = None, home: Home = None, as_json: AsJson = False) -> None:
    """Create a vault: a git repository of markdown notes. Existing markdown becomes notes.

    Example: gametape vault init --vault ~/notes
    """
    from gametape.desk.vault.vault import Vault

    opened = Vault.init(_directory(vault, home))
    names = opened.names()
    emit({"vault": str(opened.root), "notes": len(names)}, as_json, f"{opened.root}: a vault with {len(names)} notes")


@app.command()
def show(
    note: Annotated[str | None, typer.Argument(metavar="[NOTE]", help="Such as people/ada.")] = None,
    used: Annotated[bool, typer.Option(help="List notes by the outcomes of the attempts that read them.")] = False,
    vault: VaultDir = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Show a note, or list all of them.

    Exit code 1 if there is no such note.

    \b
    Examples:
      gametape vault show people/ada
      gametape vault show --used
    """
    from gametape.cli.vault_view import print_names, print_note, print_uses
    from gametape.core.errors import BadInput

    opened = _open(vault, home)
    if used:
        uses = opened.reads.usage()
        emit_json({"used": [use._asdict() for use in uses]}) if as_json else print_uses(uses)
        return
    if note is None:
        names = opened.names()
        emit_json({"vault": str(opened.root), "notes": names}) if as_json else print_names(opened)
        return
    text = opened.read(note)
    if text is None:
        raise BadInput(f"there is no note {note}")
    emit_json({"note": opened.resolve_name(note), "text": text}) if as_json else print_note(text)


@app.command()
def search(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Words, in any order.")],
    vault: VaultDir = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Search the lines of notes by words, the best match first.

    Exit code 1 if there is none.

    Example: gametape vault search "flaky test"
    """
    from gametape.cli.vault_view import print_hits
    from gametape.desk.vault.note_queries import search_notes

    hits = search_notes(_open(vault, home), text)
    emit_json({"hits": [hit._asdict() for hit in hits]}) if as_json else print_hits(hits)
    raise typer.Exit(0 if hits else 1)


@app.command()
def review(vault: VaultDir = None, home: Home = None, as_json: AsJson = False) -> None:
    """Show the changes since you last accepted a note, with the thread and turn that wrote them.

    Exits 0, with or without changes.

    Example: gametape vault review
    """
    from gametape.cli.vault_view import commit_to_dict, print_review
    from gametape.desk.vault.review import review as review_notes

    changes = review_notes(_open(vault, home))
    if as_json:
        notes = [
            {
                "note": change.note,
                "diff": list(change.diff),
                "commits": [commit_to_dict(commit) for commit in change.commits],
            }
            for change in changes
        ]
        emit_json({"notes": notes})
    else:
        print_review(changes)


@app.command()
def accept(
    notes: Annotated[list[str] | None, typer.Argument(metavar="[NOTE...]", help="Default: all that changed.")] = None,
    vault: VaultDir = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Accept the present version of notes: `review` then shows only later changes.

    Example: gametape vault accept people/ada
    """
    from gametape.desk.vault.review import accept as accept_notes
    from gametape.watch.text_features import printable

    accepted = accept_notes(_open(vault, home), notes or ())
    emit({"accepted": accepted}, as_json, f"accepted: {printable(', '.join(accepted)) or 'nothing new'}")


@app.command()
def revert(
    what: Annotated[str, typer.Argument(metavar="NOTE|COMMIT", help="As `review` names them.")],
    vault: VaultDir = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Undo a commit, or all changes to a note since it was accepted, with a new commit.

    Example: gametape vault revert people/ada
    """
    from gametape.cli.vault_view import commit_to_dict
    from gametape.desk.vault.review import revert as revert_notes
    from gametape.watch.text_features import printable

    commit = revert_notes(_open(vault, home), what)
    emit(commit_to_dict(commit), as_json, f"{commit.short} {printable(commit.subject)}")


@app.command()
def sync(
    remote: Annotated[str, typer.Option(help="A URL, a path, or the name of a git remote of the vault.")],
    vault: VaultDir = None,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Merge with a git remote: fetch, merge and push, without rewriting history on either side.

    Example: gametape vault sync --remote git@example.org:notes.git
    """
    from gametape.desk.vault.sync import sync as sync_vault
    from gametape.watch.text_features import printable

    result = sync_vault(_open(vault, home), remote)
    if as_json:
        emit_json({"pulled": result.pulled, "pushed": result.pushed, "aside": list(result.aside)})
        return
    typer.echo(f"{result.pulled} commits pulled, {result.pushed} pushed")
    for note in result.aside:
        typer.echo(f"both sides changed {printable(note)}: the other version is stored beside it")


@app.command()
def loops(vault: VaultDir = None, home: Home = None, as_json: AsJson = False) -> None:
    """List open items, the oldest first: unticked boxes, and lines that begin with `open:`.

    Example: gametape vault loops
    """
    from gametape.cli.vault_view import commit_to_dict, print_open_items
    from gametape.desk.vault.note_queries import list_open_items

    items = list_open_items(_open(vault, home))
    if as_json:
        emit_json({"loops": [item._asdict() | {"commit": commit_to_dict(item.commit)} for item in items]})
    else:
        print_open_items(items)


def _open(vault: Path | None, home: Path | None) -> "Vault":
    from gametape.desk.vault.vault import Vault

    return Vault.open(_directory(vault, home))


def _directory(vault: Path | None, home: Path | None) -> Path:

    return (vault or home_directory(home) / "vault").expanduser().absolute()
