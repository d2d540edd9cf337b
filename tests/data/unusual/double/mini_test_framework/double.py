"""Twice a number. `python double.py --check` runs the checks at the end of this file."""

import sys

_CHECKS = []


def check(function):
    _CHECKS.append(function)
    return function


def expect(actual, wanted):
    if actual != wanted:
        raise AssertionError(f"expected {wanted!r}, got {actual!r}")


def double(number):
    """Two times the number."""
    return number * 2


@check
def test_zero():
    expect(double(0), 0)


@check
def test_negative():
    expect(double(-8), -16)


def run_checks():
    failed = 0
    for function in _CHECKS:
        try:
            function()
            print("ok", function.__name__)
        except AssertionError as error:
            failed += 1
            print("FAILED", function.__name__, error)
    return failed


if __name__ == "__main__" and "--check" in sys.argv:
    raise SystemExit(run_checks())
