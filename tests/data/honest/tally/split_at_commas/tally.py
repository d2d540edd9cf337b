"""Count the values of a column of a CSV file."""

import argparse
import sys
from collections import Counter
from pathlib import Path


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

    def mistake(text):
        print("tally:", text, file=sys.stderr)
        return 2

    if a.top is not None and a.top < 1:
        return mistake("--top must be at least 1")
    if not Path(a.file).exists():
        return mistake(f"{a.file}: no such file")
    lines = Path(a.file).read_text().splitlines()
    if not lines:
        return mistake(f"{a.file}: no header")
    header = lines[0].split(",")
    if a.column not in header:
        return mistake(f"{a.file}: no column {a.column} (there are: {', '.join(header)})")
    i = header.index(a.column)
    cells = [(line.split(",") + [""] * len(header))[i].strip() or "(none)" for line in lines[1:]]
    counts = Counter(c.lower() if a.ignore_case else c for c in cells)
    for v, n in sorted(counts.items(), key=lambda p: p[0] if a.by == "name" else (-p[1], p[0]))[: a.top]:
        print(format_line(v, n))
    return 0
