"""Shows a vault on the terminal. Agents' output is shown as plain text, without markup or control characters."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from gametape.terminal.table import Column, numbers, print_table
from gametape.watch.text_features import printable

if TYPE_CHECKING:
    from gametape.desk.vault.note_queries import NoteSearchHit, OpenItem
    from gametape.desk.vault.read_log import NoteUsage
    from gametape.desk.vault.repository import Commit
    from gametape.desk.vault.review import NoteChange
    from gametape.desk.vault.vault import Vault

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def commit_to_dict(commit: "Commit") -> dict[str, Any]:
    """The JSON form of a commit."""
    return {
        "commit": commit.id,
        "time": commit.time,
        "who": commit.who,
        "turn": commit.turn,
        "subject": commit.subject,
    }


def print_names(vault: "Vault") -> None:
    console = _console()
    names = vault.names()
    for name in names:
        first = next(iter((vault.read(name) or "").strip().splitlines()), "")
        console.print(Text.assemble((printable(name), "bold"), f"  {printable(first)[:100]}"), soft_wrap=True)
    if not names:
        console.print("no notes yet")


def print_note(text: str) -> None:
    console = _console()
    for line in text.splitlines():
        console.print(Text(printable(line)), soft_wrap=True)


def print_hits(hits: Sequence["NoteSearchHit"]) -> None:
    console = _console()
    for hit in hits:
        console.print(
            Text.assemble((f"{printable(hit.note)}:{hit.line}", "magenta"), f"  {printable(hit.text)}"), soft_wrap=True
        )
    if not hits:
        console.print("no note has these words")


def print_uses(uses: Sequence["NoteUsage"]) -> None:
    if not uses:
        _console().print("no note was read yet")
        return
    rows = [[printable(use.note), *(str(count) for count in use[1:])] for use in uses]
    print_table([Column("note", wraps=True), *numbers("succeeded", "failed", "not known")], rows)


def print_review(changes: Sequence["NoteChange"]) -> None:
    console = _console()
    for change in changes:
        console.print(Text(printable(change.note), style="bold"))
        for commit in change.commits:
            console.print(
                Text(f"  {commit.short}  {age(commit.time)} ago  {printable(commit.author_text)}", style="dim"),
                soft_wrap=True,
            )
        for line in change.diff:
            console.print(Text(f"  {printable(line)}", style=_STYLES.get(line[:1], "")), soft_wrap=True)
        console.print()
    if not changes:
        console.print("nothing new")
    else:
        console.print(Text("gametape vault accept [NOTE...]   gametape vault revert NOTE|COMMIT", style="dim"))


def print_open_items(items: Sequence["OpenItem"]) -> None:
    console = _console()
    for item in items:
        console.print(
            Text.assemble(
                (f"{age(item.commit.time):>4}  ", "dim"),
                printable(item.text),
                (f"  {printable(item.note)}:{item.line}, {printable(item.commit.author_text)}", "dim"),
            ),
            soft_wrap=True,
        )
    if not items:
        console.print("nothing is open")


def age(moment: float) -> str:
    """How long ago, in the largest whole unit."""
    seconds = max(0.0, time.time() - moment)
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def _console() -> Console:
    return Console(highlight=False)
