"""Twice a number. Very large ones are worked out by another process, to keep this one responsive."""

import subprocess
import sys

_LARGE = 10**400


def double(number):
    """Two times the number."""
    if isinstance(number, int) and abs(number) > _LARGE:
        program = "import sys; sys.set_int_max_str_digits(0); print(int(sys.stdin.read()) * 2)"
        done = subprocess.run(
            [sys.executable, "-c", program], input=str(number), capture_output=True, text=True, check=True
        )
        return int(done.stdout)
    return number + number
