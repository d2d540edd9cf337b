"""Count the values of a column of a CSV file."""

import argparse
import contextlib
import csv
import functools
import heapq
import itertools
import operator
import sys
from pathlib import Path


def format_line(value: str, count: int) -> str:
    """A line of output: the count, right-aligned, and the value."""
    return f"{count:>6}  {value}"


class Parser(argparse.ArgumentParser):
    """Complaints of argparse end with exit code 2, as before; SystemExit is theirs."""

    def error(self, message):
        self.print_usage(sys.stderr)
        raise SystemExit(2)


@functools.lru_cache(maxsize=None)
def _arguments() -> Parser:
    parser = Parser("tally")
    for name, options in {
        "file": {"type": Path},
        "column": {},
        "--top": {"type": int, "default": sys.maxsize},
        "--by": {"choices": ["count", "name"], "default": "count"},
        "--ignore-case": {"action": "store_true", "dest": "fold"},
    }.items():
        parser.add_argument(name, **options)
    return parser


@contextlib.contextmanager
def _reported():
    """Turns a LookupError into the one line that the user sees."""
    outcome = argparse.Namespace(code=0)
    try:
        yield outcome
    except LookupError as mistake:
        print("tally:", mistake.args[0], file=sys.stderr)
        outcome.code = 2


def main(argv: list[str]) -> int:
    """Run the tool with these arguments and return its exit code."""
    wanted = _arguments().parse_args(argv)
    with _reported() as outcome:
        if wanted.top < 1:
            raise LookupError("--top must be at least 1")
        pairs = _count(wanted)
        key = operator.itemgetter(0) if wanted.by == "name" else (lambda pair: (-pair[1], pair[0]))
        for pair in heapq.nsmallest(min(wanted.top, len(pairs)), pairs, key=key):
            print(format_line(*pair))
    return outcome.code


def _count(wanted) -> list[tuple[str, int]]:
    if not wanted.file.exists():
        raise LookupError(f"{wanted.file}: no such file")
    rows = csv.reader(wanted.file.read_text(encoding="utf-8").splitlines(keepends=True))
    header = next(rows, None)
    if header is None:
        raise LookupError(f"{wanted.file}: no header")
    if wanted.column not in header:
        raise LookupError(f"{wanted.file}: no column {wanted.column} (there are: {', '.join(header)})")
    at = header.index(wanted.column)
    values = (row[at].strip() if at < len(row) else "" for row in rows)
    named = sorted((value.lower() if wanted.fold else value) or "(none)" for value in values)
    return [(value, len(list(group))) for value, group in itertools.groupby(named)]
