"""Count the values of a column of a CSV file."""

import argparse
import collections
import csv
import os
import sys


def format_line(value: str, count: int) -> str:
    """A line of output: the count, right-aligned, and the value."""
    return f"{count:>6}  {value}"


def _options(argv):
    parser = argparse.ArgumentParser(prog="tally")
    parser.add_argument("file")
    parser.add_argument("column")
    parser.add_argument("--top", type=int)
    parser.add_argument("--by", choices=("count", "name"), default="count")
    parser.add_argument("--ignore-case", action="store_true")
    return parser.parse_args(argv)


class Stop(SystemExit):
    """Ends the work with a line for the user; main turns it into an exit code."""


def _cells(path, column):
    if not os.path.isfile(path):
        raise Stop(f"{path}: no such file")
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.reader(file)
        header = next(reader, None)
        if header is None:
            raise Stop(f"{path}: no header")
        if column not in header:
            raise Stop(f"{path}: no column {column} (there are: {', '.join(header)})")
        at = header.index(column)
        for row in reader:
            yield (row[at : at + 1] or [""])[0].strip() or "(none)"


def main(argv: list[str]) -> int:
    """Run the tool with these arguments and return its exit code."""
    options = _options(argv)
    try:
        if options.top is not None and options.top < 1:
            raise Stop("--top must be at least 1")
        fold = str.lower if options.ignore_case else str
        counts = collections.Counter(map(fold, _cells(options.file, options.column)))
    except Stop as stop:
        print(f"tally: {stop.code}", file=sys.stderr)
        return 2
    ranked = sorted(counts.items())
    if options.by == "count":
        ranked.sort(key=lambda pair: pair[1], reverse=True)
    for pair in ranked[: options.top]:
        print(format_line(*pair))
    return 0
