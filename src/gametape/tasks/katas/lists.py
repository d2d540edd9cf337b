"""Katas over lists of numbers."""

from random import Random

from gametape.tasks.katas.kata import Arguments, KataTemplate


def _numbers(rng: Random, shortest: int = 1) -> Arguments:
    return ([rng.randint(-20, 60) for _ in range(rng.randint(shortest, 7))],)


def above(rng: Random) -> KataTemplate:
    n = rng.randint(2, 40)
    does = f"returns a list of the numbers that are larger than {n}"
    tried: list[Arguments] = [([],), ([n, n + 1, n - 1],)]
    return KataTemplate(f"above_{n}", ("numbers",), does, f"[n for n in numbers if n > {n}]", _numbers, tried)


def raised(rng: Random) -> KataTemplate:
    n = rng.randint(2, 99)
    does = f"returns a list in which {n} is added to each of the numbers"
    return KataTemplate(f"add_{n}", ("numbers",), does, f"[n + {n} for n in numbers]", _numbers, [([],)])


def scaled(rng: Random) -> KataTemplate:
    n = rng.randint(2, 99)
    does = f"returns a list in which each of the numbers is multiplied by {n}"
    return KataTemplate(f"multiply_{n}", ("numbers",), does, f"[n * {n} for n in numbers]", _numbers, [([],), ([0],)])


def total(rng: Random) -> KataTemplate:
    n = rng.randint(2, 99)
    does = f"returns the sum of the numbers plus {n}"
    return KataTemplate(f"sum_plus_{n}", ("numbers",), does, f"sum(numbers) + {n}", _numbers, [([],)])


def at(rng: Random) -> KataTemplate:
    n = rng.randint(1, 4)
    does = f"returns the item with index {n} of the list"
    return KataTemplate(f"item_{n}", ("items",), does, f"items[{n}]", lambda r: _numbers(r, n + 1))


def occurs(rng: Random) -> KataTemplate:
    n = rng.randint(0, 50)
    does = f"returns how many times {n} occurs in the list"
    tried: list[Arguments] = [([],), ([n, n],), ([n, n + 2, n, n],), ([n],)]
    return KataTemplate(f"count_{n}", ("numbers",), does, f"numbers.count({n})", _numbers, tried)


def has(rng: Random) -> KataTemplate:
    n = rng.randint(0, 50)
    does = f"returns True if {n} is in the list, and False if it is not"
    tried: list[Arguments] = [([],), ([n],), ([n + 1, n],), ([n, n - 1, 3],)]
    return KataTemplate(f"has_{n}", ("numbers",), does, f"{n} in numbers", _numbers, tried)


def smallest(rng: Random) -> KataTemplate:
    n = rng.randint(2, 4)
    does = f"returns a list of the {n} smallest numbers in order"
    return KataTemplate(f"smallest_{n}", ("numbers",), does, f"sorted(numbers)[:{n}]", lambda r: _numbers(r, n + 1))


def multiples(rng: Random) -> KataTemplate:
    n = rng.randint(2, 9)
    does = f"returns a list of the numbers that are multiples of {n}"
    tried: list[Arguments] = [([],), ([0, n, n + 1, -n],)]
    return KataTemplate(
        f"multiples_of_{n}", ("numbers",), does, f"[n for n in numbers if n % {n} == 0]", _numbers, tried
    )


def head(rng: Random) -> KataTemplate:
    n = rng.randint(2, 5)
    does = f"returns a list of the first {n} items of the list"
    return KataTemplate(f"first_{n}", ("items",), does, f"items[:{n}]", _numbers, [([],), ([7],)])


def spread(rng: Random) -> KataTemplate:
    n = rng.randint(2, 99)
    does = f"returns the largest of the numbers minus the smallest, plus {n}"
    return KataTemplate(f"range_plus_{n}", ("numbers",), does, f"max(numbers) - min(numbers) + {n}", _numbers, [([7],)])


TEMPLATES = (above, raised, scaled, total, at, occurs, has, smallest, multiples, head, spread)
