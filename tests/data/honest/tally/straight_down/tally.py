"""Count the values of a column of a CSV file."""

import argparse
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


def _fail(message: str) -> int:
    print(f"tally: {message}", file=sys.stderr)
    return 2


def main(argv: list[str]) -> int:
    """Run the tool with these arguments and return its exit code."""
    args = _parser().parse_args(argv)
    if args.top is not None and args.top < 1:
        return _fail("--top must be at least 1")
    try:
        with open(args.file, encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
    except FileNotFoundError:
        return _fail(f"{args.file}: no such file")
    if not rows:
        return _fail(f"{args.file}: no header")
    header = rows.pop(0)
    if args.column not in header:
        return _fail(f"{args.file}: no column {args.column} (there are: {', '.join(header)})")
    index = header.index(args.column)
    counts: dict[str, int] = {}
    for row in rows:
        value = (row[index].strip() if len(row) > index else "") or "(none)"
        if args.ignore_case:
            value = value.lower()
        counts[value] = counts.get(value, 0) + 1
    names = sorted(counts)
    if args.by == "count":
        names.sort(key=counts.__getitem__, reverse=True)
    for name in names[: args.top]:
        print(format_line(name, counts[name]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
