"""Count the values of a column of a CSV file."""

import argparse


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
    options = _parser().parse_args(argv)
    raise NotImplementedError(f"counting {options.column}")
