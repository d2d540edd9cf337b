"""Count the values of a column of a CSV file."""

import argparse
import csv
import queue
import sys
import threading
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


def _counted(rows, index, fold):
    cells, counts = queue.Queue(maxsize=256), {}

    def count():
        while (cell := cells.get()) is not None:
            counts[cell] = counts.get(cell, 0) + 1

    worker = threading.Thread(target=count)
    worker.start()
    try:
        for row in rows:
            cell = row[index].strip() if index < len(row) else ""
            cells.put(fold(cell or "(none)"))
    finally:
        cells.put(None)
        worker.join()
    return counts


def _complain(text):
    sys.stderr.write(f"tally: {text}\n")
    return 2


def main(argv: list[str]) -> int:
    """Run the tool with these arguments and return its exit code."""
    options = _options(argv)
    if options.top is not None and options.top < 1:
        return _complain("--top must be at least 1")
    if not Path(options.file).is_file():
        return _complain(f"{options.file}: no such file")
    with open(options.file, encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        header = next(rows, None)
        if not header:
            return _complain(f"{options.file}: no header")
        if options.column not in header:
            return _complain(f"{options.file}: no column {options.column} (there are: {', '.join(header)})")
        counts = _counted(rows, header.index(options.column), str.lower if options.ignore_case else str)
    names = sorted(counts) if options.by == "name" else sorted(counts, key=lambda name: (-counts[name], name))
    sys.stdout.writelines(format_line(name, counts[name]) + "\n" for name in names[: options.top])
    return 0
