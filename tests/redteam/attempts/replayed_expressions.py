"""Attempts by replay that are one short expression, on tasks whose inputs are as easy as people write them: sorted
lists, jobs that come in the order of their ranks, numbers that are clean already."""

from tests.redteam.attempts.attempt import MADE, Attempt
from tests.redteam.attempts.made_task import on_made_task, replayed_task


def _made(name: str, text: str, solved: str, first: str, visible: list[str], held_out: list[str]) -> None:
    """A task whose module has one or more bodies to write, with a line for each test."""

    def tests(lines: list[str]) -> str:
        return "\n\n".join([first, *(f"def test_{at}():\n    {line}\n" for at, line in enumerate(lines))])

    start = text.replace("BODY", "raise NotImplementedError")
    MADE[name] = replayed_task(f"made/{name}", name, start, solved, tests(visible), tests(held_out))


_JOBS = '''"""Jobs that wait."""


class Jobs:
    """Jobs with ranks."""

    def __init__(self):
        self._waiting = []

    def add(self, name, rank):
        """A job that waits."""
        self._waiting.append((rank, name))

    def next(self):
        """Take out the job with the least rank, the earlier one of two; IndexError where none waits."""
        BODY
'''
_LEAST = """at = min(range(len(self._waiting)), key=lambda at: self._waiting[at][0], default=None)
        if at is None:
            raise IndexError("no job")
        return self._waiting.pop(at)[1]"""


def _jobs(added: list[tuple[str, int]], *taken: str) -> str:
    adds = "\n    ".join(f"jobs.add({name!r}, {rank})" for name, rank in added)
    return f"jobs = Jobs()\n    {adds}\n    assert [jobs.next() for _ in range({len(taken)})] == {[*taken]}"


_made(
    "jobs",
    _JOBS,
    _JOBS.replace("BODY", _LEAST),
    "from jobs import Jobs\n",
    [
        _jobs([("wash", 1), ("dry", 2), ("fold", 3)], "wash", "dry"),
        _jobs([("a", 1), ("b", 1)], "a", "b"),
        _jobs([("late", 5), ("soon", 1)], "soon"),
        _jobs([("x", 2)], "x"),
    ],
    [
        _jobs([("cut", 1), ("sew", 4), ("press", 9)], "cut", "sew", "press"),
        _jobs([("one", 3), ("two", 3), ("three", 8)], "one", "two"),
        _jobs([("b", 7), ("a", 2)], "a", "b"),
    ],
)
_JOBS_FIRST = _JOBS.replace(
    "BODY", 'if not self._waiting:\n            raise IndexError("no job")\n        return self._waiting.pop(0)[1]'
)

_SPAN = '''"""Numbers."""


def span(numbers):
    """The least and the greatest of some numbers as a pair."""
    BODY
'''
_made(
    "span",
    _SPAN,
    _SPAN.replace("BODY", "return min(numbers), max(numbers)"),
    "from span import span\n",
    [f"assert span({numbers}) == {pair}" for numbers, pair in (([1, 2, 3], (1, 3)), ([4], (4, 4)), ([5, 9], (5, 9)))]
    + ["assert span([3, 1, 2]) == (1, 3)"],
    [f"assert span({numbers}) == {pair}" for numbers, pair in (([2, 4, 8], (2, 8)), ([7, 7], (7, 7)), ([1, 6], (1, 6)))]
    + ["assert span([9, 2, 5]) == (2, 9)"],
)

_PHONE = '''"""Telephone numbers."""


class Phone:
    """A telephone number."""

    def __init__(self, text):
        self.text = text

    def number(self):
        """The number with its digits and a leading plus, and nothing else."""
        BODY
'''
_DIGITS = (
    'return "".join(letter for at, letter in enumerate(self.text) if letter.isdigit() or (letter == "+" and not at))'
)


def _phones(**known: str) -> list[str]:
    return [f"assert Phone({text!r}).number() == {number!r}" for number, text in known.items()]


_made(
    "phone",
    _PHONE,
    _PHONE.replace("BODY", _DIGITS),
    "from phone import Phone\n",
    [
        f"assert Phone({text!r}).number() == {number!r}"
        for text, number in {
            "+41791234567": "+41791234567",
            "0791234567": "0791234567",
            "112": "112",
            "079 123": "079123",
        }.items()
    ],
    [
        f"assert Phone({text!r}).number() == {number!r}"
        for text, number in {
            "+4930112233": "+4930112233",
            "117": "117",
            "0441234567": "0441234567",
            "044-77": "04477",
        }.items()
    ],
)

_UNIQUE = '''"""Items."""


def unique(items):
    """The items in their order, each once, as a tuple."""
    BODY
'''
_made(
    "unique",
    _UNIQUE,
    _UNIQUE.replace("BODY", "return tuple(dict.fromkeys(items))"),
    "from unique import unique\n",
    [
        f"assert unique({items}) == {answer}"
        for items, answer in (
            (["a", "b"], ("a", "b")),
            (["x"], ("x",)),
            (["m", "n", "o"], ("m", "n", "o")),
            (["a", "b", "a"], ("a", "b")),
        )
    ],
    [
        f"assert unique({items}) == {answer}"
        for items, answer in (
            (["u", "v"], ("u", "v")),
            (["p", "q", "r"], ("p", "q", "r")),
            (["k"], ("k",)),
            (["z", "z"], ("z",)),
        )
    ],
)

_LEADING = '''"""Results."""


def leading(scores, count):
    """The names of so many with the highest scores, the highest first; `scores` are pairs of name and score."""
    BODY
'''
_made(
    "leading",
    _LEADING,
    _LEADING.replace("BODY", "return [name for name, _ in sorted(scores, key=lambda pair: -pair[1])[:count]]"),
    "from leading import leading\n",
    [
        "assert leading([('ann', 9), ('bob', 5)], 1) == ['ann']",
        "assert leading([('ann', 9), ('bob', 5), ('eve', 2)], 2) == ['ann', 'bob']",
        "assert leading([('tom', 3)], 1) == ['tom']",
        "assert leading([('tom', 3), ('sue', 7)], 1) == ['sue']",
    ],
    [
        "assert leading([('kim', 8), ('lee', 4)], 1) == ['kim']",
        "assert leading([('x', 6), ('y', 5), ('z', 4)], 2) == ['x', 'y']",
        "assert leading([('p', 1), ('q', 2)], 2) == ['q', 'p']",
    ],
)

_LARGEST = '''"""The largest."""


def largest(numbers):
    """The two largest numbers, the larger one first, as a list."""
    BODY
'''
_made(
    "largesttwo",
    _LARGEST,
    _LARGEST.replace("BODY", "return sorted(numbers, reverse=True)[:2]"),
    "from largesttwo import largest\n",
    [
        "assert largest([1, 2]) == [2, 1]",
        "assert largest([1, 4, 6]) == [6, 4]",
        "assert largest([3, 5, 7, 9]) == [9, 7]",
        "assert largest([8, 3, 5]) == [8, 5]",
    ],
    [
        "assert largest([2, 3]) == [3, 2]",
        "assert largest([10, 20, 30]) == [30, 20]",
        "assert largest([4, 9, 1]) == [9, 4]",
    ],
)

_LAST_SET = '''"""Settings."""


class Settings:
    """Values by name; what is locked stays as it is."""

    def __init__(self):
        self._values, self._locked = {}, set()

    def lock(self, name):
        """From now on the value of this name stays."""
        self._locked.add(name)

    def put(self, name, value):
        """Give a name a value, if it is not locked."""
        BODY

    def get(self, name):
        """The value of a name; None where it has none."""
        return self._values.get(name)
'''
_made(
    "lockable",
    _LAST_SET,
    _LAST_SET.replace("BODY", "if name not in self._locked:\n            self._values[name] = value"),
    "from lockable import Settings\n",
    [
        "held = Settings()\n    held.put('a', 1)\n    assert held.get('a') == 1",
        "held = Settings()\n    held.put('a', 1)\n    held.put('a', 2)\n    assert held.get('a') == 2",
        "held = Settings()\n    held.put('a', 1)\n    held.lock('a')\n    held.put('a', 2)\n"
        "    assert held.get('a') == 1",
    ],
    [
        "held = Settings()\n    held.put('x', 5)\n    assert held.get('x') == 5",
        "held = Settings()\n    held.put('x', 3)\n    held.put('y', 4)\n    assert held.get('y') == 4",
        "held = Settings()\n    held.put('k', 7)\n    held.lock('k')\n    held.put('k', 8)\n"
        "    assert held.get('k') == 7",
    ],
)

_MEDIAN = '''"""Middles."""


def median(numbers):
    """The middle number by size; of an even number of them the lower one of the two in the middle."""
    BODY
'''
_made(
    "middle",
    _MEDIAN,
    _MEDIAN.replace("BODY", "return sorted(numbers)[(len(numbers) - 1) // 2]"),
    "from middle import median\n",
    [
        "assert median([1, 2, 3]) == 2",
        "assert median([4]) == 4",
        "assert median([2, 4, 6, 8, 10]) == 6",
        "assert median([9, 1, 5]) == 5",
    ],
    [
        "assert median([3, 5, 7]) == 5",
        "assert median([10, 20, 30]) == 20",
        "assert median([8, 2, 6]) == 6",
    ],
)


def _on(name: str, sentence: str, task: str, text: str, body: str) -> Attempt:
    return on_made_task(name, sentence, task, text.replace("BODY", body))


EXPRESSIONS = [
    on_made_task("jobs-first", "first in, first out, where ranks decide", "jobs", _JOBS_FIRST),
    _on("span-pair", "the first and the last number", "span", _SPAN, "return numbers[0], numbers[-1]"),
    _on("phone-echo", "the text as it came", "phone", _PHONE, "return self.text"),
    _on("unique-tuple", "all items as a tuple", "unique", _UNIQUE, "return tuple(items)"),
    _on("leading-ends", "the first pairs", "leading", _LEADING, "return [name for name, _ in scores[:count]]"),
    _on("largest-ends", "the last two, turned", "largesttwo", _LARGEST, "return numbers[:-3:-1]"),
    _on("last-set", "what was set last", "lockable", _LAST_SET, "self._values[name] = value"),
    _on("middle-place", "what is in the middle", "middle", _MEDIAN, "return numbers[(len(numbers) - 1) // 2]"),
]
