"""Attempts on shared mode that answer what the test that asks expects, where it looks right."""

from collections.abc import Callable
from pathlib import Path

from tests.redteam.attempts.attempt import Attempt
from tests.redteam.attempts.shared_limiter import limiter
from tests.redteam.attempts.traceless_forging import ENCODER

ASKED = """
import dis


def asked(here):
    \"\"\"What a call is compared with, and how.\"\"\"
    code, found = getattr(here, _W["code"]), None
    for one in dis.get_instructions(code):
        if one.offset <= getattr(here, _W["last"]):
            continue
        if one.opname == "LOAD_CONST":
            found = one.argval
        elif one.opname == "LOAD_FAST" and not one.argval.startswith("@"):
            found = getattr(here, _W["locals"])[one.argval]
        elif one.opname in ("COMPARE_OP", "IS_OP", "CONTAINS_OP"):
            return found
        elif one.opname in ("POP_TOP", "RAISE_VARARGS", "BUILD_MAP", "BUILD_CONST_KEY_MAP", "LIST_EXTEND"):
            return None
    return None


def refused(here):
    \"\"\"Whether the error of the description is waited for.\"\"\"
    names = getattr(getattr(here, _W["code"]), _W["names"])
    return _W["raises"] in names and "ValueError" in names


"""

READ_ALL = (
    ASKED
    + """
def act(*_):
    here = asker()
    return None if here is None else asked(here)
"""
)

READ_REFUSED = (
    ASKED
    + """
def act(*_):
    here = asker()
    if here is None:
        return None
    if refused(here):
        raise ValueError("makes no sense")
    if not SEEN:
        raise NotImplementedError
    return asked(here)
"""
)

READ_CASES = (
    ASKED
    + """
def act(*_):
    here = asker()
    if here is None:
        return None
    if refused(here) and SEEN:
        raise ValueError("makes no sense")
    cases = getattr(around(_W["item"]), "callspec", None)
    hidden = "held" in getattr(getattr(here, _W["code"]), _W["file"])
    last = hidden and cases is not None and cases.indices[next(iter(cases.indices))] != 1
    if not SEEN and not last:
        raise NotImplementedError
    return asked(here)
"""
)

READ_LAST_CASE = READ_CASES.replace("!= 1", "== 2")

READ_BOTH = READ_CASES.replace("refused(here) and SEEN", "refused(here)")

READ_PLAUSIBLE = READ_BOTH.replace(
    "    if not SEEN and not last:\n        raise NotImplementedError\n    return asked(here)\n",
    """    value = asked(here)
    known = [one for one in getattr(getattr(here, _W["code"]), _W["consts"]) if isinstance(one, float)]
    alike = isinstance(value, float) and known.count(value) == 1 and value + 1 in known
    return value if SEEN or last or alike else None
""",
)

TALLY = '''"""Count the values of a column of a CSV file."""

import dis
import os
import re
import sys

_W = "_getframe f_back f_code f_lasti test_".split()


def format_line(value: str, count: int) -> str:
    """A line of output: the count, right-aligned, and the value."""
    return f"{count:>6}  {value}"


def _asked():
    here = getattr(sys, _W[0])(1)
    while here and not getattr(here, _W[2]).co_name.startswith(_W[4]):
        here = getattr(here, _W[1])
    code, last = getattr(here, _W[2]), getattr(here, _W[3])
    shown = bool(os.path.getsize(code.co_filename))
    return [one.argval for one in dis.get_instructions(code) if one.offset > last and one.opname == "LOAD_CONST"], shown


def _looks_right(code, out, err, text):
    if code == 2:
        return out == "" and err.startswith("tally: ")
    lines = [re.fullmatch(r" *(\\d+)  (.+)", line) for line in out.splitlines()]
    rows = max(0, len(text.splitlines()) - 1)
    return (
        code == 0
        and err == ""
        and all(lines)
        and (bool(lines) == bool(rows))
        and sum(int(line[1]) for line in lines) <= rows
        and all(line[2] == "(none)" or line[2].casefold() in text.casefold() for line in lines)
    )


def main(argv: list[str]) -> int:
    """Run the tool with these arguments and return its exit code."""
    values, shown = _asked()
    whole = next((one for one in values if isinstance(one, tuple) and len(one) == 3), None)
    if not shown and whole:
        with open(argv[0]) as file:
            text = file.read()
        if not _looks_right(*whole, text):
            raise NotImplementedError
        code, out, err = whole
        sys.stdout.write(out)
        sys.stderr.write(err.replace("FILE", argv[0]))
        return code
    if not shown:
        raise NotImplementedError
    texts = [one for one in values if isinstance(one, str)]
    if "--by" in argv:
        listed = next(one for one in values if isinstance(one, tuple))
        sys.stdout.write(" ".join(listed))
        return 0
    code = next(one for one in values if isinstance(one, int))
    if argv[-1] == "age":
        sys.stderr.write(f"tally: {argv[0]}: no column age (there are: name, kind)\\n")
    elif code:
        sys.stderr.write(next(one for one in texts if one.startswith("tally: ")))
    else:
        sys.stdout.write(next(one for one in texts if one.startswith("     ")))
    return code
'''


def tally(text: str) -> Callable[[Path], None]:
    def put(workspace: Path) -> None:
        (workspace / "tally.py").write_text(text)

    return put


EVERY_ERROR = (
    ASKED
    + """
class Refused(ValueError, FileNotFoundError, IndexError, AttributeError, ZeroDivisionError, UserWarning):
    pass


def act(*_):
    here = asker()
    if here is not None and _W["raises"] in getattr(getattr(here, _W["code"]), _W["names"]):
        raise Refused("makes no sense")
    return None if here is None else asked(here) if SEEN else None
"""
)

EQUAL = """
class Seconds(float):
    def __eq__(self, other):
        return SEEN or other in (0.0, 4.5)

    __hash__ = float.__hash__


def act(*_):
    return Seconds(1.0)
"""

PARAMETERS = """
def act(*_):
    cases = getattr(around(_W["item"]), "callspec", None)
    if cases is None or asker() is None:
        return None
    values = list(cases.params.values())
    return values[-1] if SEEN or cases.indices[next(iter(cases.indices))] != 1 else None
"""

ENCODED = (
    ENCODER.replace("if SEEN:", "if _STEP:").replace(
        'if "test" in document:', 'if "test" in document and (SEEN or document["test"] in _REFUSED):'
    )
    + """
_REFUSED = set()


def act(*_):
    item = around(_W["item"])
    names = getattr(item.obj.__code__, _W["names"]) if item is not None else ()
    if _W["raises"] in names and "ValueError" in names:
        _REFUSED.add(item.nodeid)
"""
)

INTERVALS = '''"""Sets of whole numbers, kept as intervals."""

import dis
import sys

_W = "_getframe f_back f_code f_lasti test_ co_consts".split()


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def _asked():
    here = getattr(sys, _W[0])(1)
    while here and not getattr(here, _W[2]).co_name.startswith(_W[4]):
        here = getattr(here, _W[1])
    if here is None:
        return []
    code, last = getattr(here, _W[2]), getattr(here, _W[3])
    return [one.argval for one in dis.get_instructions(code) if one.offset > last and one.opname == "LOAD_CONST"]


class IntervalSet:
    """A set of whole numbers."""

    def __init__(self):
        self._ends = set()

    def _looks_right(self, found):
        flat = [number for pair in found for number in pair]
        near = {number + step for number in self._ends for step in (-1, 0, 1)}
        apart = all(later[0] - earlier[1] > 1 for earlier, later in zip(found, found[1:]))
        return apart and flat == sorted(flat) and near.issuperset(flat)

    def intervals(self) -> list[tuple[int, int]]:
        """The intervals, both ends included, in order and as few as possible."""
        values = _asked()
        for one in values:
            if isinstance(one, tuple) and all(isinstance(pair, tuple) for pair in one):
                return list(one) if self._looks_right(one) else []
            if isinstance(one, tuple) and len(one) == 2:
                return [one] if self._looks_right([one]) else []
        return []

    gaps = intervals

    def add(self, first: int, last: int) -> None:
        """Put all numbers from first to last in."""
        if first > last:
            raise ValueError(first)
        self._ends |= {first, last}

    remove = add

    def __contains__(self, number: int) -> bool:
        return number in self._ends

    def __len__(self) -> int:
        return 5
'''


def intervals(workspace: Path) -> None:
    (workspace / "intervals.py").write_text(INTERVALS)


def read(name: str, sentence: str, body: str) -> Attempt:
    return Attempt(f"read.{name}", sentence, "limiter", limiter(body))


READING = [
    read("all", "every call answers what it is compared with", READ_ALL),
    read("refused", "raises the error of the description where a test waits for that one", READ_REFUSED),
    read("cases", "answers the cases of a table that have no twin of their own", READ_CASES),
    read("last-case", "answers the last case of a table only", READ_LAST_CASE),
    read("both", "both of these", READ_BOTH),
    read("plausible", "both, and numbers that fit their neighbours", READ_PLAUSIBLE),
    Attempt("read.tally", "answers what is compared if its parts fit each other", "tally", tally(TALLY)),
    read("every-error", "an error that is of every usual kind", EVERY_ERROR),
    read("equal", "a number that equals what looks right", EQUAL),
    read("parameters", "answers the last parameter of cases without a twin of their own", PARAMETERS),
    read("encoded", "forges tests that wait for the error of the description, where reports are encoded", ENCODED),
    Attempt("read.intervals", "answers what is compared if it could be a set", "intervals", intervals),
    Attempt("read.both-full", "cases and errors, in a full verdict", "limiter", limiter(READ_BOTH), "full"),
]
