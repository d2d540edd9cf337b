"""Count the values of a column of a CSV file."""

import csv
from collections import Counter


def format_line(value: str, count: int) -> str:
    """A line of output: the count, right-aligned, and the value."""
    return f"{count:>6}  {value}"


def main(argv: list[str]) -> int:
    """Run the tool with these arguments and return its exit code."""
    path, column = argv[:2]
    with open(path) as file:
        counts = Counter(row[column] for row in csv.DictReader(file))
    for value in sorted(counts, key=lambda v: (-counts[v], v)):
        print(format_line(value, counts[value]))
    return 0
