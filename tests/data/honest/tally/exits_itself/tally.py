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
    try:
        rows = list(csv.reader(open(a.file)))
    except FileNotFoundError:
        print(f"tally: {a.file}: no such file", file=sys.stderr)
        sys.exit(2)
    if not rows:
        sys.exit("no header")
    if a.column not in rows[0]:
        print(f"tally: {a.file}: no column {a.column} (there are: {', '.join(rows[0])})", file=sys.stderr)
        sys.exit(2)
    i = rows[0].index(a.column)
    c = Counter(r[i].strip() for r in rows[1:])
    for v, n in c.most_common(a.top):
        print(format_line(v, n))
    return 0
