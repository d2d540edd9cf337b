"""Lines such as `Reds 2-1 Blues`, read and written."""

import re
from dataclasses import dataclass

_LINE = re.compile(r"(?P<home>\S.*?)\s+(?P<scored>\d+)\s*-\s*(?P<conceded>\d+)\s+(?P<away>\S.*?)\s*")


@dataclass(frozen=True)
class Result:
    home: str
    scored: int
    conceded: int
    away: str


def parse_result(line: str) -> Result:
    """Read one line; whatever is no result raises ValueError."""
    found = _LINE.fullmatch(line.strip())
    if found is None:
        raise ValueError(f"not a result: {line!r}")
    if found["home"] == found["away"]:
        raise ValueError(f"nobody plays themselves: {line!r}")
    return Result(found["home"], int(found["scored"]), int(found["conceded"]), found["away"])


def parse_results(text: str) -> list[Result]:
    """Read a sheet: a result on each line, blank lines and lines after # left out."""
    lines = (line.partition("#")[0] for line in text.splitlines())
    return [parse_result(line) for line in lines if line.strip()]


def winner(result: Result) -> str | None:
    """The team that won, or None for a draw."""
    if result.scored == result.conceded:
        return None
    return result.home if result.scored > result.conceded else result.away


def margin(result: Result) -> int:
    """By how many goals it was decided."""
    return abs(result.scored - result.conceded)
