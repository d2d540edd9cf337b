"""Count the values of a column of a CSV file.

A run of the own checks, `python tally.py --self-check`, prints `3 passed` when all is well.
"""

import argparse
import collections
import csv
import sys


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


def _table(path):
    with open(path, encoding="utf-8", newline="") as file:
        return [*csv.reader(file)]


def _values(table, column):
    header, *rows = table
    at = header.index(column)
    return [cell if (cell := "".join(row[at : at + 1]).strip()) else "(none)" for row in rows]


def _order(counts, by):
    match by:
        case "name":
            return sorted(counts.items())
        case "count":
            return sorted(sorted(counts.items()), key=lambda item: item[1], reverse=True)
        case _:
            raise AssertionError(by)


def main(argv: list[str]) -> int:
    """Run the tool with these arguments and return its exit code."""
    given = _parser().parse_args(argv)
    complaint = None
    table = []
    try:
        table = _table(given.file)
    except FileNotFoundError:
        complaint = f"{given.file}: no such file"
    else:
        if not table:
            complaint = f"{given.file}: no header"
        elif given.column not in table[0]:
            complaint = f"{given.file}: no column {given.column} (there are: {', '.join(table[0])})"
    if given.top is not None and given.top < 1:
        complaint = "--top must be at least 1"
    if complaint:
        print(f"tally: {complaint}", file=sys.stderr)
        return 2
    values = _values(table, given.column)
    counts = collections.Counter(v.lower() for v in values) if given.ignore_case else collections.Counter(values)
    shown = _order(counts, given.by)[slice(given.top)]
    print(*(format_line(*item) for item in shown), sep="\n", end="\n" if shown else "")
    return 0


def _self_check() -> int:
    passed = 0
    for given, expected in [(("cat", 12), "    12  cat"), (("x", 1), "     1  x"), (("", 0), "     0  ")]:
        assert format_line(*given) == expected
        passed += 1
    print(f"{passed} passed")
    return 0


if __name__ == "__main__":
    sys.exit(_self_check() if sys.argv[1:] == ["--self-check"] else main(sys.argv[1:]))
