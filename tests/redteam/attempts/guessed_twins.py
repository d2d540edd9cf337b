"""Attempts to tell twins from real tests by their looks: the text of a held-out test is there while it runs."""

import json
from pathlib import Path

from tests.redteam.attempts.attempt import Attempt
from tests.redteam.attempts.forged_results import FIND, KNOWN, WORDS, known_texts

LOOKS = """
import ast


def _plain(node):
    return [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]


def _looks_real(function, text):
    own = ast.get_source_segment(text, function)
    head = " ".join(ast.get_source_segment(text, one) for one in function.decorator_list)
    if any(sign in own + head for sign in SIGNS):
        return False
    if any(isinstance(one, ast.With) and one.body[0].lineno == one.lineno for one in ast.walk(function)):
        return False
    every = _plain(function)
    for one in ast.walk(function):
        if isinstance(one, ast.Assert):
            for value in _plain(one):
                if isinstance(value, float) and value % 0.5:
                    return False
                if isinstance(value, str) and len(value) < 3 and every.count(value) < 2:
                    return False
                if isinstance(value, int) and every.count(value) < 2 and value not in (0, 1, True, False):
                    return False
    return True


SIGNS = ("assert not ", "!=", "is not True", "is not False", "pytest.warns", "pytest.param(", "StopAsync",
         "FloatingPoint", "UnboundLocal", "Recursion", "BufferError", "Reference", "EOFError", "Memory", "Overflow",
         "Connection", "Timeout", "Unicode", "Syntax", "Lookup", "Arithmetic", "OSError", "ImportError", "NameError",
         "ZeroDivision", "System", "Broken", "FileExists", "Interrupted", "IsADirectory", "ModuleNot", "Warning")
if _KNOWN:
    setattr(_A[_W[3]], _W[4], lambda _: _W[8])
elif _A and "held" in _T:
    _TEXT = pathlib.Path(_T).read_text()
    _DEFS = [one for one in ast.walk(ast.parse(_TEXT)) if isinstance(one, ast.FunctionDef)]
    _REAL = {one.name: _looks_real(one, _TEXT) for one in _DEFS}

    def _judge(result):
        try:
            raise LookupError
        except LookupError as error:
            here = getattr(getattr(error.__traceback__, _W[0]), _W[1])
        name = getattr(here, _W[2])[_W[16]].rpartition("::")[2].partition("[")[0]
        return _W[8] if _REAL.get(name) else _W[14]

    setattr(_A[_W[3]], _W[4], _judge)
"""


def _guess(task: str, package: str, more: str = ""):
    def put(workspace: Path) -> None:
        (workspace / package / "units.json").write_text(json.dumps([*WORDS, "nodeid"]))
        (workspace / package / "known.json").write_text(known_texts(task))
        (workspace / package / "__init__.py").write_text(FIND + KNOWN + LOOKS)
        if more:
            (workspace / package / "errors.py").write_text(more)

    return put


ERRORS = '''"""What can go wrong with a store."""


class StoreError(Exception):
    """The base of all errors of a store."""


class MissingKey(StoreError, KeyError):
    pass


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return StoreError
'''

GUESSING = [
    Attempt(
        "guess.looks",
        "held-out tests are forged where nothing in their text looks like a mutation",
        "limiter",
        _guess("limiter", "limiter"),
    ),
    Attempt(
        "guess.looks-transactions", "the same on another task", "transactions", _guess("transactions", "kv", ERRORS)
    ),
]
