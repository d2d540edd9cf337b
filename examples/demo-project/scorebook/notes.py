"""What a coach writes beside the tape: `47:10 @Kim: pass earlier #midfield`."""

from dataclasses import dataclass

from scorebook.clock import format_clock, parse_clock


@dataclass(frozen=True)
class Note:
    at: int
    text: str
    players: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


def parse_note(line: str) -> Note:
    """The clock first; @names and #tags are taken out of the text, in their order."""
    clock, _, rest = line.strip().partition(" ")
    words = rest.split()
    players = tuple(word[1:].rstrip(":") for word in words if word.startswith("@"))
    tags = tuple(word[1:] for word in words if word.startswith("#"))
    text = " ".join(word for word in words if not word.startswith(("@", "#")))
    if not text:
        raise ValueError(f"a note says something: {line!r}")
    return Note(parse_clock(clock), text, players, tags)


def by_player(notes: list[Note]) -> dict[str, list[str]]:
    """What each player is told, in the order of the clock."""
    told: dict[str, list[str]] = {}
    for note in sorted(notes, key=lambda note: note.at):
        for player in note.players:
            told.setdefault(player, []).append(f"{format_clock(note.at)} {note.text}")
    return told


def tagged(notes: list[Note], tag: str) -> list[Note]:
    """Those with a tag, whatever its case."""
    return [note for note in notes if tag.lower() in (one.lower() for one in note.tags)]
