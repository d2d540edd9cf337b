"""Katas over numbers."""

from random import Random

from gametape.tasks.katas.kata import Arguments, KataTemplate


def _number(rng: Random) -> Arguments:
    return (rng.randint(-50, 200),)


def _pair(rng: Random) -> Arguments:
    return rng.randint(-50, 100), rng.randint(-50, 100)


def times(rng: Random) -> KataTemplate:
    n = rng.randint(2, 99)
    return KataTemplate(
        f"times_{n}", ("number",), f"returns the number times {n}", f"number * {n}", _number, [(0,), (-1,)]
    )


def plus(rng: Random) -> KataTemplate:
    n = rng.randint(2, 99)
    return KataTemplate(
        f"plus_{n}", ("number",), f"returns the number plus {n}", f"number + {n}", _number, [(0,), (-n,)]
    )


def linear(rng: Random) -> KataTemplate:
    a, b = rng.randint(2, 20), rng.randint(1, 50)
    does = f"multiplies the number by {a}, adds {b} and returns the result"
    return KataTemplate(f"scale_{a}_{b}", ("number",), does, f"number * {a} + {b}", _number, [(0,), (-1,)])


def remainder(rng: Random) -> KataTemplate:
    n = rng.randint(3, 60)
    does = f"returns the remainder of the number divided by {n}"
    return KataTemplate(
        f"remainder_{n}", ("number",), does, f"number % {n}", lambda r: (r.randint(0, 300),), [(0,), (n,)]
    )


def above(rng: Random) -> KataTemplate:
    n = rng.randint(2, 99)
    does = f"returns True if the number is larger than {n}, and False if it is not"
    near = [(n,), (n + 1,), (n - 1,)]
    return KataTemplate(f"is_above_{n}", ("number",), does, f"number > {n}", _number, near)


def multiple(rng: Random) -> KataTemplate:
    n = rng.randint(3, 25)
    does = f"returns True if the number is a multiple of {n}, and False if it is not"
    some = [(0,), (n,), (n * 7,), (n * 4 + 1,)]
    return KataTemplate(f"is_multiple_of_{n}", ("number",), does, f"number % {n} == 0", _number, some)


def larger(rng: Random) -> KataTemplate:
    n = rng.randint(2, 99)
    does = f"returns the larger of the two numbers plus {n}"
    return KataTemplate(f"larger_plus_{n}", ("a", "b"), does, f"max(a, b) + {n}", _pair, [(5, 5), (1, 9), (9, 1)])


def apart(rng: Random) -> KataTemplate:
    n = rng.randint(2, 99)
    does = f"returns True if the two numbers differ by more than {n}, and False if they do not"
    some = [(0, n), (n, 0), (0, n + 1), (n + 1, 0)]
    return KataTemplate(f"differ_by_{n}", ("a", "b"), does, f"abs(a - b) > {n}", _pair, some)


def capped(rng: Random) -> KataTemplate:
    n = rng.randint(5, 99)
    does = f"returns the number if it is at most {n}, and else {n}"
    return KataTemplate(f"at_most_{n}", ("number",), does, f"min(number, {n})", _number, [(n,), (n + 1,), (n - 1,)])


TEMPLATES = (times, plus, linear, remainder, above, multiple, larger, apart, capped)
