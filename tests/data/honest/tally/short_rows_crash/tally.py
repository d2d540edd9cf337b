"""Count the values of a column of a CSV file."""

import argparse
import csv
import os
import sys
from collections import Counter


def format_line(value: str, count: int) -> str:
    """A line of output: the count, right-aligned, and the value."""
    return f"{count:>6}  {value}"


def _parser():
    parser = argparse.ArgumentParser(prog="tally", description=__doc__)
    parser.add_argument("file")
    parser.add_argument("column")
    parser.add_argument("--top", type=int, metavar="N")
    parser.add_argument("--by", choices=("count", "name"), default="count")
    parser.add_argument("--ignore-case", action="store_true")
    return parser


def main(argv: list[str]) -> int:
    """Run the tool with these arguments and return its exit code."""
    a = _parser().parse_args(argv)
    if not os.path.exists(a.file):
        print(f"tally: {a.file}: no such file", file=sys.stderr)
        return 2
    with open(a.file, newline="", encoding="utf-8") as f:
        rows = list(csv.reader(f))
    header = rows[0] if rows else []
    if a.column not in header:
        print(f"tally: {a.file}: no column {a.column} (there are: {', '.join(header)})", file=sys.stderr)
        return 2
    values = [r[header.index(a.column)].strip() for r in rows[1:]]
    if a.ignore_case:
        values = [v.lower() for v in values]
    items = sorted(Counter(values).items(), key=lambda i: i[0] if a.by == "name" else (-i[1], i[0]))
    for v, n in items[: a.top]:
        print(format_line(v, n))
    return 0
