"""Count the values of a column of a CSV file."""

import csv
import sys
from collections import Counter


def format_line(value: str, count: int) -> str:
    """A line of output: the count, right-aligned, and the value."""
    return f"{count:>6}  {value}"


def main(argv: list[str]) -> int:
    """Run the tool with these arguments and return its exit code."""
    file, column, *rest = argv
    top = int(rest[rest.index("--top") + 1]) if "--top" in rest else None
    try:
        with open(file, newline="") as f:
            reader = csv.DictReader(f)
            counts = Counter(row[column] for row in reader)
    except FileNotFoundError:
        print(f"tally: {file}: no such file", file=sys.stderr)
        return 2
    except KeyError:
        print(f"tally: {file}: no column {column} (there are: {', '.join(reader.fieldnames)})", file=sys.stderr)
        return 2
    for value, count in counts.most_common(top):
        print(format_line(value, count))
    return 0
