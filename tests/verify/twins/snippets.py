"""Small test files, each with the code it tests: all pass, and every twin of them has to fail."""

# ruff: noqa: E501 (one file of a suite on one line)

SNIPPETS = {
    "int": "def f(): return 3\ndef test_a():\n    assert f() == 3\n",
    "zero": "def f(): return 0\ndef test_a():\n    assert f() == 0\n",
    "one that is true": "def f(): return True\ndef test_a():\n    assert f() == 1\n",
    "negative": "def f(): return -7\ndef test_a():\n    assert f() == -7\n",
    "hex": "def f(): return 255\ndef test_a():\n    assert 0xff == f()\n",
    "float": "def f(): return 0.1 + 0.2\ndef test_a():\n    assert round(f(), 3) == 0.3\n",
    "complex": "def f(): return 2j\ndef test_a():\n    assert f() == 2j\n",
    "approx": "import pytest\ndef test_a():\n    assert 0.1 + 0.2 == pytest.approx(0.3, abs=1e-3)\n",
    "approx list": "import pytest\ndef test_a():\n    assert [0.1, 2.0] == pytest.approx([0.1, 2.0])\n",
    "loose approx": "import pytest\ndef test_a():\n    assert 5.0 == pytest.approx(4.0, rel=0.9)\n",
    "isclose": "import math\ndef test_a():\n    assert math.isclose(0.1 + 0.2, 0.3)\n",
    "string": "def f(): return 'Hello, world 12'\ndef test_a():\n    assert f() == 'Hello, world 12'\n",
    "empty string": "def f(): return ''\ndef test_a():\n    assert f() == ''\n",
    "blank": "def f(): return ' '\ndef test_a():\n    assert f() == ' '\n",
    "escapes": "def f(): return 'a\\n\\x41\\t'\ndef test_a():\n    assert f() == 'a\\n\\x41\\t'\n",
    "raw": "def f(): return r'\\d+ a'\ndef test_a():\n    assert f() == r'\\d+ a'\n",
    "pieces": "def f(): return 'ab12'\ndef test_a():\n    assert f() == (\n        'ab'  # one\n        '12'\n    )\n",
    "triple": 'def f(): return "a\\n  b\\n"\ndef test_a():\n    assert f() == """a\n  b\n"""\n',
    "not ascii": "def f(): return 'é→ü'\ndef test_a():\n    é = f(); assert é == 'é→ü'  # ü\n    assert f() == 'é→ü'\n",
    "bytes": "def f(): return b'ab\\x00'\ndef test_a():\n    assert f() == b'ab\\x00'\n",
    "plain f-string": "def f(): return 'abc'\ndef test_a():\n    assert f() == f'abc'\n",
    "holes": "def f(): return 'abc1'\ndef test_a():\n    x = 1\n    assert f() == f'abc{x}'\n",
    "none": "def f(): return None\ndef test_a():\n    assert f() is None\n    assert f() == None\n",
    "list": "def f(): return [1, True, 'a']\ndef test_a():\n    assert f() == [1, True, 'a']\n",
    "flags": "def f(): return [True, False]\ndef test_a():\n    assert f() == [True, False]\n",
    "nested": "def f(): return {'a': [1, (2, 3)]}\ndef test_a():\n    assert f() == {'a': [1, (2, 3)]}\n",
    "set": "def f(): return {1, 2, 9}\ndef test_a():\n    assert f() == {1, 2, 9}\n",
    "partly literal": "def f(): return [1, 2]\ndef test_a():\n    y = f()[1]\n    assert f() == [1, y]\n",
    "empty list": "def f(): return []\ndef test_a():\n    assert f() == []\n    assert not f()\n",
    "join": "def f(): return 'a\\nb'\ndef test_a():\n    expected = '\\n'.join(['a', 'b'])\n    assert f() == expected\n",
    "decimal": "from decimal import Decimal\ndef test_a():\n    assert Decimal(1) / 4 == Decimal('0.25')\n",
    "named": "def f(): return 5\ndef test_a():\n    expected = 5\n    assert f() == expected, expected\n",
    "input too": "def f(x): return x\ndef test_a():\n    x = 5\n    assert f(x) == x\n",
    "order": "def f(): return 3\ndef test_a():\n    assert f() < 4\n    assert 1 < f() <= 3\n    assert f() != 9\n",
    "membership": "def f(): return [1, 2]\ndef test_a():\n    assert 1 in f()\n    assert 5 not in f()\n",
    "truth": "def f(): return 1\ndef test_a():\n    assert f()\n    assert not(f() - 1)\n    assert f() and f() or 0\n",
    "instance": "def f(): return 1\ndef test_a():\n    assert isinstance(f(), int)\n    assert f() if f() else 0\n",
    "walrus": "def f(): return 1\ndef test_a():\n    assert (x := f())\n    assert x == 1\n",
    "length": "def test_a():\n    assert len('abc') == 3\n    assert sorted('ba') == ['a', 'b']\n",
    "loop": "def f(x): return x * 2\ndef test_a():\n    for x in [1, 2]:\n        assert f(x) == x + x\n",
    "counted": "def test_a():\n    for i in range(3):\n        assert i * 2 == i + i\n",
    "with": "import io\ndef test_a():\n    with io.StringIO('ab') as file:\n        assert file.read() == 'ab'\n",
    "finally": "def test_a():\n    try:\n        assert len('a') == 1\n    finally:\n        print()\n",
    "crlf": "def f(): return 'a'\r\ndef test_a():\r\n    assert f() == 'a'\r\n    assert f() != 'é'\r\n",
    "raises": "import pytest\ndef f(): raise KeyError(1)\ndef test_a():\n    with pytest.raises(KeyError):\n        f()\n",
    "own error": (
        "from pytest import raises\nclass E(ValueError, KeyError): pass\ndef f(): raise E('no such thing')\n"
        "def test_a():\n    with raises(E, match='such thing') as info:\n        f()\n    assert 'no' in str(info.value)\n"
    ),
    "raises call": "import pytest\ndef test_a():\n    pytest.raises(ValueError, int, 'x')\n",
    "exit": "import pytest, sys\ndef test_a():\n    with pytest.raises(SystemExit):\n        sys.exit(0)\n",
    "warns": (
        "import warnings, pytest\ndef f(): warnings.warn('old', DeprecationWarning)\n"
        "def test_a():\n    with pytest.warns(DeprecationWarning, match='old'):\n        f()\n"
    ),
    "no assertion": "def f(): return 1\ndef test_a():\n    x = f()\n    f()\n",
    "helper": "def f(x): return x + 1\ndef check(x, y):\n    assert f(x) == y\ndef test_a():\n    check(1, 2)\n",
    "mock": "from unittest import mock\ndef test_a():\n    m = mock.Mock()\n    m(1)\n    m.assert_called_once_with(1)\n",
    "not called": "from unittest import mock\ndef test_a():\n    m = mock.Mock()\n    m.assert_not_called()\n",
    "cases": (
        "import pytest\ndef f(x): return x * 2\n@pytest.mark.parametrize('x, y', [(1, 2), (3, 6), ('ab', 'abab')])\n"
        "def test_a(x, y):\n    assert f(x) == y\n"
    ),
    "named cases": (
        "import pytest\n@pytest.mark.parametrize('x', [pytest.param(1, id='one'), 2], ids=['a', 'b'])\n"
        "def test_a(x):\n    assert len('a' * 1) <= x\n"
    ),
    "kept ids": (
        "import pytest\n@pytest.mark.parametrize(['x', 'y'], [('a', ['a']), pytest.param('b', ['b'], id='bee')])\n"
        "def test_a(x, y):\n    assert list(x) == y\n"
    ),
    "one name": "import pytest\n@pytest.mark.parametrize('y', [3, 4.5, None])\ndef test_a(y):\n    assert abs(y or 0) >= 0\n",
    "class": "class TestA:\n    def check(self, a, b):\n        assert a == b\n    def test_a(self):\n        self.check(len('a'), 1)\n",
    "given": (
        "from hypothesis import given, strategies as s\n@given(s.integers())\ndef test_a(x):\n    assert x + 0 == x\n"
    ),
    "unittest": """import unittest
class T(unittest.TestCase):
    def test_equal(self):
        self.assertEqual(len('abc'), 3, 'length')
        self.assertEqual('ab'.upper(), 'AB')
        self.assertNotEqual(len('a'), 2)
        self.assertListEqual(list('ab'), ['a', 'b'])
        self.assertDictEqual(dict(a=1), {'a': 1})
        self.assertCountEqual('ab', ['b', 'a'])
    def test_other(self):
        self.assertTrue(len('a'))
        self.assertFalse('')
        self.assertIn('a', 'ab')
        self.assertNotIn('c', 'ab')
        self.assertIs(None, None)
        self.assertIsNone(None)
        self.assertIsNotNone(1)
        self.assertIsInstance(1, int)
        self.assertAlmostEqual(0.1 + 0.2, 0.3)
        self.assertGreater(len('ab'), 1)
        self.assertLessEqual(len('ab'), 2)
        self.assertRegex('abc', 'b')
    def test_raises(self):
        with self.assertRaises(ValueError):
            int('x')
        with self.assertRaisesRegex(ValueError, 'invalid literal'):
            int('x')
        self.assertRaises(KeyError, {}.__getitem__, 1)
    def test_quiet(self):
        with self.subTest(a=1):
            self.assertEqual(len('a'), 1)
""",
}

SILENT = {
    "after return": "def test_a(x=1):\n    if x:\n        return\n    assert len('a') == 2\n",
    "branch": "def test_a():\n    if len('a') == 2:\n        assert len('a') == 1\n",
    "swallowed": "import contextlib\ndef test_a():\n    with contextlib.suppress(AssertionError):\n        assert len('a') == 1\n",
    "caught": "def test_a():\n    try:\n        assert len('a') == 1\n    except AssertionError:\n        pass\n",
    "unknown manager": "from shop import cart\ndef test_a():\n    with cart():\n        assert len('a') == 1\n",
    "unknown loop": "from shop import items\ndef test_a():\n    for item in items():\n        assert len('a') == 1\n",
    "nested": "def test_a():\n    def inner():\n        assert len('a') == 1\n",
    "clock": "import time\ndef test_a():\n    start = time.time()\n    assert time.time() - start < 1\n",
    "addresses": "def test_a():\n    assert id([]) != 1\n",
    "expected to fail": "import pytest\n@pytest.mark.xfail\ndef test_a():\n    assert len('a') == 2\n",
    "unknown decorator": "from shop import quietly\n@quietly\ndef test_a():\n    assert len('a') == 1\n",
    "assumed": (
        "from hypothesis import assume, given, strategies as s\n@given(s.integers())\ndef test_a(x):\n"
        "    assume(x > 1)\n    assert x > 0\n"
    ),
    "does not parse": "def test_a(:\n",
}
"""Files in which nothing is certain: no twin may be made."""
