"""Count the values of a column of a CSV file."""


def format_line(value: str, count: int) -> str:
    """A line of output: the count, right-aligned, and the value."""
    return f"{count:>6}  {value}"


def main(argv: list[str]) -> int:
    """Run the tool with these arguments and return its exit code."""
    return 0
