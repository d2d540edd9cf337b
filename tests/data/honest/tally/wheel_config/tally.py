"""Count the values of a column of a CSV file."""

import argparse
import atexit
import csv
import io
import logging
import os
import sys
from collections import OrderedDict

log = logging.getLogger("tally")
log.addHandler(logging.NullHandler())
atexit.register(logging.shutdown)
NONE = os.environ.get("TALLY_NONE", "(none)")


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


class Tally:
    """Counts by value, in the order in which values came."""

    def __init__(self, fold=False):
        self.fold = fold
        self.counts = OrderedDict()

    def count(self, value):
        value = value.strip() or NONE
        value = value.lower() if self.fold else value
        self.counts[value] = self.counts.get(value, 0) + 1

    def __iter__(self):
        return iter(self.counts.items())

    def by(self, order):
        return sorted(self, key={"name": lambda item: item[0], "count": lambda item: (-item[1], item[0])}[order])


def main(argv: list[str]) -> int:
    """Run the tool with these arguments and return its exit code."""
    options = _parser().parse_args(argv)
    log.info("options: %s", options)
    mistake, tally = _read(options)
    if mistake:
        print("tally: " + mistake, file=sys.stderr)
        return 2
    out = io.StringIO()
    for value, count in tally.by(options.by)[: options.top]:
        print(format_line(value, count), file=out)
    print(out.getvalue(), end="", flush=True)
    return 0


def _read(options):
    if options.top is not None and options.top < 1:
        return "--top must be at least 1", None
    if not os.path.isfile(options.file):
        return f"{options.file}: no such file", None
    tally = Tally(options.ignore_case)
    with open(options.file, encoding="utf-8", newline="") as lines:
        rows = csv.reader(lines)
        try:
            header = next(rows)
        except StopIteration:
            return f"{options.file}: no header", None
        if options.column not in header:
            return f"{options.file}: no column {options.column} (there are: {', '.join(header)})", None
        position = header.index(options.column)
        for row in rows:
            tally.count(row[position] if position < len(row) else "")
    return None, tally
