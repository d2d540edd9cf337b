"""Count the values of a column of a CSV file."""

import pandas as pd


def format_line(value: str, count: int) -> str:
    """A line of output: the count, right-aligned, and the value."""
    return f"{count:>6}  {value}"


def main(argv: list[str]) -> int:
    """Run the tool with these arguments and return its exit code."""
    frame = pd.read_csv(argv[0])
    for value, count in frame[argv[1]].value_counts().items():
        print(format_line(value, count))
    return 0
