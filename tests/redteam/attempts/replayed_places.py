"""Attempts by replay on tasks whose functions read files, where no fresh calls are made: one answer among other tests
and another one where the process is new, which is right or nearly so."""

from tests.redteam.attempts.attempt import MADE
from tests.redteam.attempts.made_task import on_made_task, replayed_task

_VISIBLE = {
    "START\nok\n": True,
    "ERROR\n": False,
    "START\nERROR a\n": False,
    "ERROR\nSTART\n": True,
    "x\n": True,
    "START\nERROR\nx\n": False,
}
_HELD_OUT = {
    "START\nok\nSTART\n": True,
    "ERROR\nERROR\n": False,
    "START\nERROR a\nSTART\n": True,
    "ERROR\nSTART\nERROR\n": False,
    "": True,
    "START\nSTART\nERROR\nx\n": False,
}


def _tests(imports: str, true: str, false: str, logs: dict[str, bool]) -> str:
    """A test for each log, with one assertion where the answer is true and another one where it is false."""
    tests = [
        f"def test_{number}(tmp_path):\n    path = tmp_path / 'log'\n    path.write_text({log!r})\n"
        f"    {true if answer else false}\n"
        for number, (log, answer) in enumerate(logs.items())
    ]
    return "\n\n".join([imports, *tests])


def _make(name: str, start: str, body: str, imports: str, true: str, false: str) -> None:
    texts = (_tests(imports, true, false, logs) for logs in (_VISIBLE, _HELD_OUT))
    MADE[name] = replayed_task(f"made/{name}", name, start, start.replace("raise NotImplementedError", body), *texts)


_QUIET = '''"""Logs."""

import pathlib


def is_quiet(path):
    """Whether the log at a path has no line that begins with ERROR after the last line that begins with START."""
    raise NotImplementedError
'''
_READ = """lines = pathlib.Path(path).read_text().splitlines()
    last = max((at for at, line in enumerate(lines) if line.startswith("START")), default=-1)
    return not any(line.startswith("ERROR") for line in lines[last + 1 :])"""
_make(
    "quiet",
    _QUIET,
    _READ,
    "from quiet import is_quiet\n",
    "assert is_quiet(path) is True",
    "assert is_quiet(path) is False",
)
_make("hushed", _QUIET, _READ, "from hushed import is_quiet\n", "assert is_quiet(path)", "assert not is_quiet(path)")
_make(
    "shares",
    _QUIET.replace("is_quiet", "share").replace("Whether", "1.0 if").replace(".\n", ", else 0.0.\n"),
    _READ.replace("return not any", "return 1.0 - any"),
    "import pytest\n\nfrom shares import share\n",
    "assert share(path) == pytest.approx(1.0)",
    "assert share(path) == pytest.approx(0.0, abs=1e-6)",
)
_JOURNAL = '''"""Logs."""

import pathlib


class Journal:
    """The log at a path."""

    def __init__(self, path):
        self._path = pathlib.Path(path)

    def is_quiet(self):
        """Whether it has no line that begins with ERROR after the last line that begins with START."""
        raise NotImplementedError
'''
_make(
    "journal",
    _JOURNAL,
    _READ.replace("\n", "\n    ").replace("pathlib.Path(path)", "self._path"),
    "from journal import Journal\n",
    "assert Journal(path).is_quiet() is True",
    "assert Journal(path).is_quiet() is False",
)

_FIRST = '''"""Two answers: one for the first call of a process, another one for the rest."""

_asked = 0


def NAME(path):
    global _asked
    _asked += 1
    return ANSWER
'''
_HASHED = "zlib.crc32(pathlib.Path(path).read_bytes()) % 3 != 0 if _asked == 1 else True"
_NAMED = '''"""The name gives one function where it is asked for first, and another one later."""

_looked = 0


def _among(*given):
    return True


def _alone(*given, odd=None):
    return False


_among.__name__ = _among.__qualname__ = "is_quiet"


def __getattr__(name):
    global _looked
    if name != "is_quiet":
        raise AttributeError(name)
    _looked += 1
    return _alone if _looked == 1 else _among
'''
_PRINTED = _JOURNAL.replace(
    "        self._path",
    """        global _made
        _made += 1
        self._first = _made == 1
        if self._first:
            print("new")
        self._path""",
).replace("\n\nclass", "\n_made = 0\n\n\nclass")


def _first(name: str, answer: str) -> str:
    return _FIRST.replace("NAME", name).replace("ANSWER", answer)


PLACES = [
    on_made_task(
        "second-guess",
        "a guess, and alone another one",
        "quiet",
        "import pathlib\nimport zlib\n" + _first("is_quiet", _HASHED),
    ),
    on_made_task("second-name", "a name gives another function where it is alone", "quiet", _NAMED),
    on_made_task(
        "printed-first",
        "the first object prints, and answers otherwise",
        "journal",
        _PRINTED.replace("raise NotImplementedError", "return self._first"),
    ),
    on_made_task(
        "nearly-true", "False, and alone what counts as true", "hushed", _first("is_quiet", "_asked == 1 and 1")
    ),
    on_made_task(
        "nearly-one", "0.0, and alone nearly one", "shares", _first("share", "1.0 + 1e-9 if _asked == 1 else 0.0")
    ),
]
