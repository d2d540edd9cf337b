"""Count the values of a column of a CSV file."""

import argparse
import csv
import sqlite3
import sys
from pathlib import Path


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


ORDER = {"count": "n DESC, value", "name": "value"}


def main(argv: list[str]) -> int:
    """Run the tool with these arguments and return its exit code."""
    options = _options(argv)
    if options.top is not None and options.top <= 0:
        print("tally: --top must be at least 1", file=sys.stderr)
        return 2
    try:
        lines = Path(options.file).read_text(encoding="utf-8").splitlines(keepends=True)
    except FileNotFoundError:
        print(f"tally: {options.file}: no such file", file=sys.stderr)
        return 2
    header, *rows = [*csv.reader(lines)] or [None]
    if header is None or options.column not in header:
        names = f"no column {options.column} (there are: {', '.join(header)})" if header else "no header"
        print(f"tally: {options.file}: {names}", file=sys.stderr)
        return 2
    place = header.index(options.column)
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE cell (value TEXT COLLATE BINARY)")
    cells = (row[place].strip() if len(row) > place else "" for row in rows)
    named = ((cell.lower() if options.ignore_case else cell) or "(none)" for cell in cells)
    database.executemany("INSERT INTO cell VALUES (?)", ((cell,) for cell in named))
    query = f"SELECT value, count(*) AS n FROM cell GROUP BY value ORDER BY {ORDER[options.by]} LIMIT ?"
    for value, number in database.execute(query, (options.top or -1,)):
        print(format_line(value, number))
    return 0
