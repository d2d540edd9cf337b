"""Katas over dictionaries from names to numbers."""

from random import Random

from gametape.tasks.katas.kata import Arguments, KataTemplate
from gametape.tasks.katas.strings import WORDS


def _table(rng: Random) -> Arguments:
    return ({name: rng.randint(-10, 60) for name in rng.sample(WORDS, rng.randint(1, 4))},)


def _with(key: str) -> list[Arguments]:
    return [({},), ({key: 5},), ({key: 0, "other": 3},), ({"other": 3, key: 8},)]


def looked_up(rng: Random) -> KataTemplate:
    n = rng.randint(1, 99)
    does = f"returns the value of the key in the dictionary, or {n} if the key is not in it"
    tried: list[Arguments] = [({}, "apple"), ({"apple": 0}, "apple"), ({"apple": 4}, "lemon")]

    def inputs(rng: Random) -> Arguments:
        (table,) = _table(rng)
        return table, rng.choice([*table, rng.choice(WORDS)])

    return KataTemplate(f"get_or_{n}", ("table", "key"), does, f"table.get(key, {n})", inputs, tried)


def total(rng: Random) -> KataTemplate:
    n = rng.randint(2, 99)
    does = f"returns the sum of the values of the dictionary plus {n}"
    return KataTemplate(f"values_plus_{n}", ("table",), does, f"sum(table.values()) + {n}", _table, [({},)])


def has(rng: Random) -> KataTemplate:
    word = rng.choice(WORDS)
    does = f"returns True if '{word}' is a key of the dictionary, and False if it is not"
    return KataTemplate(f"has_{word}", ("table",), does, f"{word!r} in table", _table, _with(word))


def above(rng: Random) -> KataTemplate:
    n = rng.randint(2, 40)
    does = f"returns a list of the keys of the dictionary whose value is larger than {n}"
    tried: list[Arguments] = [({},), ({"apple": n, "lemon": n + 1},)]
    return KataTemplate(
        f"keys_above_{n}", ("table",), does, f"[key for key in table if table[key] > {n}]", _table, tried
    )


def raised(rng: Random) -> KataTemplate:
    n = rng.randint(2, 99)
    does = f"returns a new dictionary with the same keys in which {n} is added to every value"
    expression = f"{{key: value + {n} for key, value in table.items()}}"
    return KataTemplate(f"raise_{n}", ("table",), does, expression, _table, [({},)])


def larger(rng: Random) -> KataTemplate:
    n = rng.randint(1, 3)
    does = f"returns True if the dictionary has more than {n} keys, and False if it has not"
    return KataTemplate(f"has_more_than_{n}", ("table",), does, f"len(table) > {n}", _table, [({},)])


def ordered(rng: Random) -> KataTemplate:
    word = rng.choice(WORDS)
    does = f"returns a sorted list of the keys of the dictionary with '{word}' at its end"
    return KataTemplate(f"keys_and_{word}", ("table",), does, f"[*sorted(table), {word!r}]", _table, [({},)])


def named(rng: Random) -> KataTemplate:
    word = rng.choice(WORDS)
    does = f"returns the value of the key '{word}' in the dictionary, or 0 if it is not in it"
    return KataTemplate(f"get_{word}", ("table",), does, f"table.get({word!r}, 0)", _table, _with(word))


TEMPLATES = (looked_up, total, has, above, raised, larger, ordered, named)
