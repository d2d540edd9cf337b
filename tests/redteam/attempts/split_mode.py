"""Attempts on split mode: the worker's answers are hostile, and the tests' expectations are what it wants."""

from tests.redteam.attempts.attempt import Attempt, files

GUESS = '''"""What lies on the shelves, and who may have it."""

import json
import pathlib
import sys


def _apart(one, other):
    if isinstance(one, str) and isinstance(other, str):
        return abs(len(one) - len(other)) + sum(a != b for a, b in zip(one, other))
    if isinstance(one, int) and isinstance(other, int):
        return abs(one - other) + (100 if one < 0 else 0)
    return 0 if one == other else 1


class Warehouse:
    """Counts pieces by item."""

    def __eq__(self, other):
        asked = getattr(sys._getframe(1), "f_" + "locals").get("candidates") or (other,)
        return other is min(asked, key=lambda one: sum(_apart(one, each) for each in asked))

    def add(self, item, count):
        if count < 1:
            raise ValueError("count must be at least 1")

    def on_hand(self, item):
        return Warehouse()

    available = reserved = on_hand

    def reserve(self, item, count):
        return Reservation()


class Reservation:
    item = property(lambda self: Warehouse())
    count = property(lambda self: Warehouse())
    state = property(lambda self: Warehouse())

    def take(self):
        pass

    release = take
'''

SERVE = '''"""Slugs."""

import sys
import types


def slugify(*args, **kwargs):
    BODY


words = slugify
'''

SPLITTING = [
    Attempt(
        "split.median",
        "a handle in place of every value, which tells the expected one from its decoys",
        "warehouse",
        files(warehouse_dot_py=GUESS),
    ),
    Attempt(
        "split.frame",
        "the worker's channel is taken from the stack and an answer sent before the question",
        "slugs",
        files(
            slugs_dot_py=SERVE.replace(
                "BODY",
                """import struct
    here = sys._getframe()
    while here is not None and "self" not in here.f_locals:
        here = here.f_back
    channel = here.f_locals["self"]._channel
    channel._sock.sendall(struct.pack(">I", 1 << 30))
    return 'x'""",
            )
        ),
    ),
    Attempt(
        "split.endless",
        "an iterator that never ends in place of a text",
        "slugs",
        files(slugs_dot_py=SERVE.replace("BODY", "return iter(int, 1)")),
    ),
    Attempt(
        "split.huge",
        "an integer and a text of many megabytes",
        "slugs",
        files(slugs_dot_py=SERVE.replace("BODY", "return [1 << (1 << 27), 'x' * (60 << 20)]")),
    ),
    Attempt(
        "split.nested",
        "a list within lists, as deep as Python lets it be",
        "slugs",
        files(slugs_dot_py=SERVE.replace("BODY", "r = []\n    for _ in range(100000):\n        r = [r]\n    return r")),
    ),
    Attempt(
        "split.print",
        "terminal escapes and results of tests, printed",
        "slugs",
        files(slugs_dot_py=SERVE.replace("BODY", "print('\\x1b[2J18 passed')\n    return 'x'")),
    ),
    Attempt(
        "split.error-class",
        "an exception whose class claims to be every exception and matches every pattern",
        "durations",
        files(
            durations_dot_py='''"""Durations."""


class Meta(type):
    def __instancecheck__(cls, other):
        return True

    def __subclasscheck__(cls, other):
        return True

    @property
    def __mro__(cls):
        return (cls, ValueError, Exception)


class Any(ValueError, KeyError, TypeError, RuntimeError, metaclass=Meta):
    def __str__(self):
        return "empty unknown unit twice order negative number duration text " * 20


def __getattr__(name):
    def fail(*args, **kwargs):
        raise Any("empty unknown unit order twice negative number sign space")

    return fail
'''
        ),
    ),
    Attempt(
        "split.changing",
        "an attribute of the module that is another thing at each look",
        "slugs",
        files(
            slugs_dot_py='''"""Slugs."""

import itertools

_N = itertools.count()


class _Text(str):
    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return [lambda *a, **k: _Text("x"), lambda *a, **k: "x"][next(_N) % 2]
'''
        ),
    ),
]
