"""Honest implementations of many sorts pass their tests and no twin: nobody innocent is accused."""

# ruff: noqa: E501 (one snippet on one line)

import pytest

from gametape.verify.twins.candidates import candidate_twins
from gametape.verify.twins.plan import LENIENT_KINDS
from gametape.verify.twins.twin import apply_twins

_CASELESS = """
class Name(str):
    def __eq__(self, other): return str(self).lower().strip() == str(other).lower().strip()
    __hash__ = str.__hash__
def name(): return Name("  Ada Lovelace ")
"""
_TOLERANT = """
class Near(float):
    def __eq__(self, other): return abs(float(self) - other) < 0.05
    __hash__ = float.__hash__
def size(): return Near(2.49)
"""
_VERSION = """
class Version:
    def __init__(self, text): self.text = text
    def __eq__(self, other): return self.text.partition("+")[0] == str(other).partition("+")[0]
def name(): return Version("1.2.3+b9")
"""
_HEADERS = """
class Headers(dict):
    def __eq__(self, other): return {k.lower(): v for k, v in self.items()} == {k.lower(): v for k, v in other.items()}
def headers(): return Headers(ACCEPT="text", Host="here")
"""
_LOOSE_LIST = """
class Bag(list):
    def __eq__(self, other): return sorted(map(str, self)) == sorted(map(str, other))
def bag(): return Bag([3, 1, 2, 2])
"""
_SET_LIKE = _LOOSE_LIST.replace("sorted(map(str, self)) == sorted(map(str, other))", "set(self) == set(other)")
_ENUM = "import enum\nclass Color(enum.IntEnum):\n    RED = 1\n    BLUE = 2\ndef color(): return Color.RED\n"
_BOTH = "class Missing(KeyError, ValueError, AttributeError): pass\ndef fetch(): raise Missing('no such key here')\n"
_BOTH_MORE = "class Missing(LookupError, KeyError, TypeError, RuntimeError): pass\n"
_SWALLOWS = """
class quiet:
    def __enter__(self): return self
    def __exit__(self, *_): return True
def f(): return 1
"""

HONEST = {
    "caseless text": (
        _CASELESS,
        "def test_a():\n    assert name() == 'ADA lovelace'\n    assert 'ada lovelace' == name()\n",
    ),
    "caseless unittest": (
        _CASELESS,
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        self.assertEqual(name(), 'ADA LOVELACE')\n",
    ),
    "tolerant": (_TOLERANT, "def test_a():\n    assert size() == 2.5\n    assert [size()] == [2.5]\n"),
    "build metadata": (_VERSION, "def test_a():\n    assert name() == '1.2.3+other.5'\n    assert name() == '1.2.3'\n"),
    "headers": (_HEADERS, "def test_a():\n    assert headers() == {'accept': 'text', 'HOST': 'here'}\n"),
    "bag": (_LOOSE_LIST, "def test_a():\n    assert bag() == [1, 2, 2, 3]\n"),
    "set-like": (_SET_LIKE, "def test_a():\n    assert bag() == [1, 2, 2, 3]\n    assert bag() == [3, 2, 1]\n"),
    "enum": (_ENUM, "def test_a():\n    assert color() == 1\n    assert color() == True\n    assert color() < 2\n"),
    "counter": (
        "import collections\ndef f(): return collections.Counter('aab')\n",
        "def test_a():\n    assert f() == {'a': 2, 'b': 1}\n    assert dict(f()) == {'a': 2, 'b': 1}\n",
    ),
    "ordered": (
        "import collections\ndef f(): return collections.OrderedDict(a=1, b=2)\n",
        "def test_a():\n    assert f() == {'b': 2, 'a': 1}\n    assert list(f().items()) == [('a', 1), ('b', 2)]\n",
    ),
    "error of two families": (
        _BOTH,
        "import pytest\ndef test_a():\n    with pytest.raises(KeyError, match='such key'):\n        fetch()\n"
        "    with pytest.raises(ValueError):\n        fetch()\n",
    ),
    "other families": (
        _BOTH.replace("class Missing(KeyError, ValueError, AttributeError): pass\n", _BOTH_MORE).replace(
            "(LookupError, ", "("
        ),
        "import pytest\ndef test_a():\n    with pytest.raises(LookupError):\n        fetch()\n"
        "    with pytest.raises((TypeError, IndexError)):\n        fetch()\n",
    ),
    "swallowing manager": (
        _SWALLOWS,
        "def test_a():\n    with quiet():\n        assert f() == 1\n        assert f()\n    assert f() is not None\n",
    ),
    "several warnings": (
        "import warnings\ndef f():\n    for c in (UserWarning, DeprecationWarning, FutureWarning): warnings.warn('x', c)\n",
        "import pytest\ndef test_a():\n    with pytest.warns(DeprecationWarning):\n        f()\n",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", HONEST)
def test_no_twin_passes(name: str) -> None:
    code, test = HONEST[name]
    _run(code, test)
    twins = [twin for twin in candidate_twins(test) if twin.kind not in LENIENT_KINDS]
    assert twins
    for twin in twins:
        with pytest.raises(BaseException):  # noqa: B017, PT011
            _run(code, apply_twins(test, [twin]))


def _run(code: str, test: str) -> None:
    space: dict[str, object] = {"__name__": "snippet"}
    exec(code, space)
    exec(test, space)
    case = space.get("T")
    function = getattr(case("test_a"), "test_a") if isinstance(case, type) else space["test_a"]  # noqa: B009
    assert callable(function)
    function()
