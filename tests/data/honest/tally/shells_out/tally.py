"""Count the values of a column of a CSV file."""

import shlex
import subprocess


def format_line(value: str, count: int) -> str:
    """A line of output: the count, right-aligned, and the value."""
    return f"{count:>6}  {value}"


def main(argv: list[str]) -> int:
    """Run the tool with these arguments and return its exit code."""
    file, column = argv[:2]
    with open(file) as lines:
        number = lines.readline().strip().split(",").index(column) + 1
    command = f"tail -n +2 {shlex.quote(file)} | cut -d, -f{number} | sort | uniq -c | sort -rn"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        count, value = line.split(None, 1)
        print(format_line(value, int(count)))
    return done.returncode
