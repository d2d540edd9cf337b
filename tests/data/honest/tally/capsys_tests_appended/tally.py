"""Count the values of a column of a CSV file."""

import argparse
import csv
import enum
import sys
from collections import Counter
from collections.abc import Iterator


class Exit(enum.IntEnum):
    """What the shell is told."""

    OK = 0
    MISTAKE = 2


class TallyError(Exception):
    code = Exit.MISTAKE


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


def _cells(file, column) -> Iterator[str]:
    try:
        stream = open(file, encoding="utf-8", newline="")
    except OSError as error:
        raise TallyError(f"{file}: no such file") from error
    with stream:
        reader = csv.DictReader(stream, restval="")
        if reader.fieldnames is None:
            raise TallyError(f"{file}: no header")
        if column not in reader.fieldnames:
            raise TallyError(f"{file}: no column {column} (there are: {', '.join(reader.fieldnames)})")
        for row in reader:
            yield row[column].strip() or "(none)"


def main(argv: list[str]) -> int:
    """Run the tool with these arguments and return its exit code."""
    options = _parser().parse_args(argv)
    try:
        if options.top is not None and options.top <= 0:
            raise TallyError("--top must be at least 1")
        fold = str.lower if options.ignore_case else str
        counts = Counter(map(fold, _cells(options.file, options.column)))
    except TallyError as error:
        sys.stderr.write(f"tally: {error}\n")
        return error.code
    ordered = sorted(counts.items(), key=(lambda p: p[0]) if options.by == "name" else (lambda p: (-p[1], p[0])))
    sys.stdout.writelines(f"{format_line(*pair)}\n" for pair in ordered[: options.top])
    return Exit.OK
