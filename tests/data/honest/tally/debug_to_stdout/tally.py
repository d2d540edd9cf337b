"""Count the values of a column of a CSV file."""

import argparse
import csv
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
    print("DEBUG", a)
    try:
        with open(a.file, encoding="utf-8", newline="") as f:
            rows = list(csv.reader(f))
    except FileNotFoundError:
        print(f"tally: {a.file}: no such file", file=sys.stderr)
        return 2
    if a.column not in rows[0]:
        print(f"tally: {a.file}: no column {a.column} (there are: {', '.join(rows[0])})", file=sys.stderr)
        return 2
    i = rows[0].index(a.column)
    c = Counter((r[i].strip() if i < len(r) else "") or "(none)" for r in rows[1:])
    for v, n in sorted(c.items(), key=lambda x: (-x[1], x[0])):
        print(format_line(v, n))
    return 0
