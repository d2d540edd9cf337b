"""A league table: three points for a win, one for a draw."""

from collections.abc import Iterable
from dataclasses import dataclass

from scorebook.results import Result


@dataclass(frozen=True)
class Row:
    team: str
    played: int = 0
    points: int = 0
    scored: int = 0
    conceded: int = 0

    @property
    def difference(self) -> int:
        return self.scored - self.conceded


def points_for(scored: int, conceded: int) -> int:
    """What one side of a result is worth."""
    if scored > conceded:
        return 3
    return 1 if scored == conceded else 0


def standings(results: Iterable[Result]) -> list[Row]:
    """Every team that played, best first: by points, then difference, then goals, then name."""
    rows: dict[str, Row] = {}
    for result in results:
        for team, scored, conceded in (
            (result.home, result.scored, result.conceded),
            (result.away, result.conceded, result.scored),
        ):
            row = rows.get(team, Row(team))
            rows[team] = Row(
                team,
                row.played + 1,
                row.points + points_for(scored, conceded),
                row.scored + scored,
                row.conceded + conceded,
            )
    return sorted(rows.values(), key=lambda row: (-row.points, -row.difference, -row.scored, row.team))


def places(rows: Iterable[Row]) -> dict[str, int]:
    """The place of each team of a sorted table; equal points and goals share one, and the next is skipped."""
    found: dict[str, int] = {}
    before: Row | None = None
    for number, row in enumerate(rows, start=1):
        level = before is not None and (row.points, row.difference, row.scored) == (
            before.points,
            before.difference,
            before.scored,
        )
        found[row.team] = found[before.team] if level and before else number
        before = row
    return found
