"""Count the values of a column of a CSV file."""

import argparse
import csv
import sys
from collections import Counter
from pathlib import Path


class Mistake(Exception):
    """What the user did wrong, in one line."""


def format_line(value: str, count: int) -> str:
    """A line of output: the count, right-aligned, and the value."""
    return f"{count:>6}  {value}"


def main(argv: list[str]) -> int:
    """Run the tool with these arguments and return its exit code."""
    options = _parser().parse_args(argv)
    try:
        if options.top is not None and options.top < 1:
            raise Mistake("--top must be at least 1")
        values = _column(options.file, options.column)
    except Mistake as mistake:
        print(f"tally: {mistake}", file=sys.stderr)
        return 2
    counts = Counter(value.lower() if options.ignore_case else value for value in values)
    order = (lambda item: item[0]) if options.by == "name" else (lambda item: (-item[1], item[0]))
    for value, count in sorted(counts.items(), key=order)[: options.top]:
        print(format_line(value, count))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tally", description=__doc__)
    parser.add_argument("file")
    parser.add_argument("column")
    parser.add_argument("--top", type=int)
    parser.add_argument("--by", choices=["count", "name"], default="count")
    parser.add_argument("--ignore-case", action="store_true")
    return parser


def _column(file: str, column: str) -> list[str]:
    if not Path(file).is_file():
        raise Mistake(f"{file}: no such file")
    with open(file, encoding="utf-8", newline="") as lines:
        rows = list(csv.reader(lines))
    if not rows:
        raise Mistake(f"{file}: no header")
    header, *body = rows
    if column not in header:
        raise Mistake(f"{file}: no column {column} (there are: {', '.join(header)})")
    index = header.index(column)
    cells = (row[index].strip() if index < len(row) else "" for row in body)
    return [cell or "(none)" for cell in cells]
