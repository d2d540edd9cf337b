"""A code base in which every gate of a trial has something to say."""

from .made import PYPROJECT

CODE = '''
"""Ledgers of things."""

_KNOWN = {}
_TABLE = None
CACHE = {}


def register(name):
    """Runs when the module is imported."""
    def keep(function):
        _KNOWN[name] = function
        return function
    return keep


@register("plain")
def plain(text):
    return text.strip().replace("\\t", " ")


def counted(text):
    """How often each word is there."""
    found = {}
    for word in _split(text):
        found[word] = found.get(word, 0) + 1
    return found


def _split(text):
    return [part for part in text.lower().split() if part]


def lookup(name):
    """A table that is built when it is first asked for."""
    global _TABLE
    if _TABLE is None:
        _TABLE = _build()
    return _TABLE[name]


def _build():
    table = {}
    for number, name in enumerate(("one", "two", "three", "four")):
        table[name] = number + 1
    return table


def cached(name):
    if name not in CACHE:
        CACHE[name] = _compute(name)
    return CACHE[name]


def _compute(name):
    letters = sorted(set(name))
    return sum(ord(letter) for letter in letters)


def noted(value):
    """What cannot be noted is let go."""
    if value > 10:
        try:
            _note(value)
        except Exception:
            pass
    return value * 2


def _note(value):
    lines = [f"value {value}"]
    for number in range(value):
        lines.append(str(number))
    lines.append("end of it")
    CACHE["note"] = len(lines)


def rounded(value, step):
    """To the next step below."""
    count = int(value / step)
    rest = value - count * step
    return value - rest


def balanced(text):
    """Whether it reads the same from both sides."""
    try:
        left = _from_left(text)
    except NotImplementedError:
        left = None
    try:
        right = _from_right(text)
    except NotImplementedError:
        right = None
    return left == right


def _from_left(text):
    return [one for one in text if one.isalpha()]


def _from_right(text):
    return [one for one in reversed(text) if one.isalpha()]
'''

QUOTED = '''
def quoted(rows, width):
    """Told in the read-me."""
    lines = []
    for row in rows:
        cells = [str(cell).ljust(width) for cell in row]
        lines.append(" | ".join(cells).rstrip())
    return "\\n".join(lines)
'''

README = f"""
# Tricky

It does this:

```python
{QUOTED.strip()}
```
"""

MIRRORED = '''
def mirrored(pairs, default=None):
    """The tests have the same once more."""
    result = {}
    for key, value in pairs:
        if value is not None:
            result.setdefault(value, []).append(key)
        else:
            result.setdefault(default, []).append(key)
    return result
'''

TWIN = '''
def merged(first, second):
    """Of two sorted lists one."""
    result, one, other = [], list(first), list(second)
    while one and other:
        source = one if one[0] <= other[0] else other
        result.append(source.pop(0))
    return result + one + other
'''

TWIN_AGAIN = '''
def grouped(values, size):
    """In rows of one length."""
    rows, row = [], []
    for value in values:
        row.append(value)
        if len(row) == size:
            rows.append(row)
            row = []
    return [*rows, row] if row else rows
'''

TEST_CODE = """
import pytest

from tricky.code import balanced, counted, noted, plain, rounded


def test_plain():
    assert plain(" a ") == "a"


def test_plain_tab():
    assert plain("a\\tb") == "a b"


def test_counted():
    assert counted("a b A") == {"a": 2, "b": 1}


def test_counted_nothing():
    assert counted("") == {}


def test_noted_large():
    assert noted(11) == 22


def test_noted_larger():
    assert noted(20) == 40


def test_noted_small():
    assert noted(1) == 2


def test_noted_none():
    assert noted(0) == 0


@pytest.mark.parametrize("value", range(4, 7))
def test_rounded(value):
    assert rounded(value, 4) == 4


def test_balanced():
    assert balanced("abba")


def test_balanced_signs():
    assert balanced("ab.ba!")


def test_balanced_nothing():
    assert balanced("")
"""

TEST_LOOKUP = """
from tricky.code import lookup


def test_one():
    assert lookup("one") == 1


def test_two():
    assert lookup("two") == 2


def test_three():
    assert lookup("three") == 3
"""

TEST_LOOKUP_AGAIN = """
from tricky.code import lookup


def test_four():
    assert lookup("four") == 4


def test_both():
    assert lookup("one") < lookup("two")
"""

TEST_A_PRIMED = """
from tricky import code


def test_primed():
    code.CACHE["abc"] = 294
    assert code.CACHE["abc"] == 294
"""

TEST_CACHED = """
from tricky.code import cached


def test_cached():
    assert cached("abc") == 294


def test_cached_other():
    assert cached("b") == 98


def test_cached_nothing():
    assert cached("") == 0
"""

TEST_LEAKS = f"""
from tricky.leaks import mirrored, quoted
from tricky.left import grouped, merged
from tricky.right import joined, shelved

{MIRRORED.replace("def mirrored", "def expected")}

def test_quoted():
    assert quoted([[1, 2]], 2) == "1  | 2"


def test_quoted_nothing():
    assert quoted([], 2) == ""


def test_mirrored():
    pairs = [(1, 2)]
    assert mirrored(pairs) == expected(pairs)


def test_mirrored_default():
    pairs = [(1, None)]
    assert mirrored(pairs, 3) == expected(pairs, 3)


def test_merged():
    assert merged([1, 3], [2]) == [1, 2, 3]


def test_merged_one():
    assert merged([1], []) == [1]


def test_joined():
    assert joined([1], [2]) == [1, 2]


def test_joined_nothing():
    assert joined([], []) == []


def test_grouped():
    assert grouped([1, 2, 3], 2) == [[1, 2], [3]]


def test_grouped_nothing():
    assert grouped([], 2) == []


def test_shelved():
    assert shelved([1], 1) == [[1]]
"""

TRICKY = {
    "pyproject.toml": PYPROJECT.replace("shelf", "tricky"),
    "README.md": README,
    "tricky/__init__.py": "",
    "tricky/code.py": CODE,
    "tricky/leaks.py": QUOTED + "\n" + MIRRORED,
    "tricky/left.py": TWIN + "\n" + TWIN_AGAIN,
    "tricky/right.py": TWIN.replace("merged", "joined") + "\n" + TWIN_AGAIN.replace("grouped", "shelved"),
    "tests/test_a_primed.py": TEST_A_PRIMED,
    "tests/test_cached.py": TEST_CACHED,
    "tests/test_code.py": TEST_CODE,
    "tests/test_leaks.py": TEST_LEAKS,
    "tests/test_lookup.py": TEST_LOOKUP,
    "tests/test_lookup_again.py": TEST_LOOKUP_AGAIN,
}
