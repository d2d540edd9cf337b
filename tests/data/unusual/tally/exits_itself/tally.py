"""Count the values of a column of a CSV file."""

import argparse
import collections
import csv
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


def main(argv: list[str]) -> int:
    """Run the tool with these arguments and return its exit code."""
    options = _options(argv)
    if options.top is not None and options.top < 1:
        sys.exit("tally: --top must be at least 1")
    try:
        with open(options.file, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
    except FileNotFoundError:
        sys.exit(f"tally: {options.file}: no such file")
    counts = collections.Counter((row.get(options.column) or "").strip() or "(none)" for row in rows)
    for value, count in counts.most_common(options.top):
        print(format_line(value, count))
    return 0
