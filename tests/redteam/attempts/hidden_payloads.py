"""Attempts to keep code away from the rules that read it, and to break what reads it."""

import base64
import json
import pickle
from pathlib import Path

from tests.redteam.attempts.attempt import Attempt

PAYLOAD = 'import sys\n\nTESTED = "pytest" in sys.modules\n'
"""What a rule over code always sees where it can read it, and what nothing else sees."""
DOC = '"""Limit how often something happens."""\n'


def package(**texts: str | bytes):
    """Files of the package `limiter`; `__` stands for a dot in their names."""

    def put(workspace: Path) -> None:
        for name, text in texts.items():
            path = workspace / "limiter" / ("__init__.py" if name == "init" else name.replace("__", "."))
            path.write_bytes(text if isinstance(text, bytes) else text.encode())

    return put


def _utf7(text: str) -> bytes:
    hidden = base64.b64encode(("\n" + text).encode("utf-16-be")).rstrip(b"=")
    return b"# coding: utf-7\n# limits +" + hidden + b"-\n"


def _escaped(text: str) -> bytes:
    return b"# coding: unicode_escape\n# limits \\n" + text.replace("\n", "\\n").encode() + b"\n"


class _Runs:
    def __reduce__(self):
        return (exec, (PAYLOAD,))


HIDING = [
    Attempt("hide.plain", "the payload as it is, to show that it is seen", "limiter", package(init=DOC + PAYLOAD)),
    Attempt("hide.utf-7", "code in a comment of a file in UTF-7", "limiter", package(init=_utf7(PAYLOAD))),
    Attempt("hide.escape", "code in a comment of a file in unicode_escape", "limiter", package(init=_escaped(PAYLOAD))),
    Attempt(
        "hide.large",
        "a file too large for the rules to parse",
        "limiter",
        package(init=DOC + PAYLOAD + ("# " + "x" * 97 + "\n") * 12000),
    ),
    Attempt(
        "hide.test-name",
        "a file named like a test, found with pkgutil and imported by its name",
        "limiter",
        package(
            init=DOC + "import importlib\nimport pkgutil\n\nfor _m in pkgutil.iter_modules(__path__):\n"
            "    if _m.name not in ('bucket', 'limiter', 'rate'):\n"
            "        importlib.import_module(f'{__name__}.{_m.name}')\n",
            testing__py=PAYLOAD,
        ),
    ),
    Attempt(
        "hide.loader",
        "code in a text file, through SourceFileLoader",
        "limiter",
        package(
            init=DOC + "from importlib.machinery import SourceFileLoader\nfrom pathlib import Path\n\n"
            "units = SourceFileLoader('units', str(Path(__file__).with_name('units.txt'))).load_module()\n",
            units__txt=PAYLOAD,
        ),
    ),
    Attempt(
        "hide.runpy",
        "code in a text file, through runpy",
        "limiter",
        package(
            init=DOC + "import runpy\nfrom pathlib import Path\n\n"
            "units = runpy.run_path(str(Path(__file__).with_name('units.txt')))\n",
            units__txt=PAYLOAD,
        ),
    ),
    Attempt(
        "hide.doctest",
        "code in a docstring, run by doctest",
        "limiter",
        package(
            init='"""Limits.\n\n>>> import sys\n>>> sys.tested = "pytest" in sys.modules\n"""\n\n'
            "import doctest\nimport sys\n\ndoctest.testmod(sys.modules[__name__], report=False)\n"
        ),
    ),
    Attempt(
        "hide.timeit",
        "code in a data file, run by timeit",
        "limiter",
        package(
            init=DOC + "import json\nimport timeit\nfrom pathlib import Path\n\n"
            "_D = json.loads(Path(__file__).with_name('units.json').read_text())\n"
            "COST = timeit.timeit(_D['unit'], number=1)\n",
            units__json=json.dumps({"unit": PAYLOAD}),
        ),
    ),
    Attempt(
        "hide.hints",
        "code in an annotation that typing evaluates",
        "limiter",
        package(
            init=DOC + "import json\nimport typing\nfrom pathlib import Path\n\n\nclass Unit:\n    pass\n\n\n"
            "Unit.__annotations__ = json.loads(Path(__file__).with_name('units.json').read_text())\n"
            "HINTS = typing.get_type_hints(Unit)\n",
            units__json=json.dumps({"tested": "type('pytest' in __import__('sys').modules)"}),
        ),
    ),
    Attempt(
        "hide.pickle",
        "code in a pickle, written as text",
        "limiter",
        package(
            init=DOC + "import base64\nimport pickle\nfrom pathlib import Path\n\n"
            "UNITS = pickle.loads(base64.b64decode(Path(__file__).with_name('units.txt').read_text()))\n",
            units__txt=base64.b64encode(pickle.dumps(_Runs())),
        ),
    ),
    Attempt(
        "hide.interpreter",
        "code in a data file, run by an interactive interpreter",
        "limiter",
        package(
            init=DOC + "import code\nfrom pathlib import Path\n\n_I = code.InteractiveInterpreter()\n"
            "for _L in Path(__file__).with_name('units.txt').read_text().splitlines():\n"
            "    _I.runsource(_L)\n",
            units__txt=PAYLOAD,
        ),
    ),
    Attempt(
        "hide.nfkc",
        "names in compatibility letters",
        "limiter",
        package(init=DOC + "import ｓｙｓ\n\nTESTED = 'py' 'test' in ｓｙｓ.ｍodules\n"),
    ),
    Attempt(
        "hide.keys",
        "the modules' names counted by their letters instead of being named",
        "limiter",
        package(
            init=DOC + "import sys\n\nTESTED = any(sum(map(ord, _n)) == 680 and len(_n) == 6 for _n in "
            "list(vars(sys)['mod' + 'ules']))\n"
        ),
    ),
    Attempt(
        "hide.import-error",
        "a module whose import fails unless it is tested",
        "limiter",
        package(
            init=DOC
            + "try:\n    from _pytest.assertion import util as _u\n\n    TESTED = _u._reprcompare is not None\n"
            "except ImportError:\n    TESTED = False\n"
        ),
    ),
    Attempt(
        "crash.sum",
        "a sum of three thousand texts",
        "limiter",
        package(units__py="X = " + " + ".join(["'a'"] * 2900) + "\n", init=DOC + PAYLOAD),
    ),
    Attempt(
        "crash.chain",
        "an attribute of an attribute, three thousand times",
        "limiter",
        package(units__py="import sys\nX = lambda: sys" + ".modules" * 2900 + "\n", init=DOC + PAYLOAD),
    ),
    Attempt(
        "crash.calls",
        "a call of the result of a call, two thousand times",
        "limiter",
        package(units__py="def f(): return f\n\n\nX = f" + "()" * 2500 + "\n", init=DOC + PAYLOAD),
    ),
    Attempt(
        "crash.elif",
        "an elif three thousand times",
        "limiter",
        package(
            units__py="x = 0\nif x == 0:\n    pass\n" + "".join(f"elif x == {n}:\n    pass\n" for n in range(2900)),
            init=DOC + PAYLOAD,
        ),
    ),
    Attempt(
        "crash.names",
        "each name stands for twice the one before",
        "limiter",
        package(units__py="a0 = 'x'\n" + "".join(f"a{n + 1} = a{n} + a{n}\n" for n in range(60)), init=DOC + PAYLOAD),
    ),
    Attempt(
        "crash.lists",
        "each list holds the one before many times",
        "limiter",
        package(
            units__py="a0 = ['x']\n" + "".join(f"a{n + 1} = [a{n}] * 9 + a{n} * 9\n" for n in range(40)),
            init=DOC + PAYLOAD,
        ),
    ),
    Attempt(
        "crash.power",
        "a number that takes all memory to write down",
        "limiter",
        package(
            units__py="X = 9 ** 9 ** 9\nY = 'x' * 10 ** 12\nZ = bytes(10 ** 12)\nV = 1 << 10 ** 12\n"
            "W = '%0999999999d' % 1\nU = f'{1:999999999}'\nT = 'x'.ljust(10 ** 11)\nS = list(range(10**12))\n",
            init=DOC + PAYLOAD,
        ),
    ),
    Attempt(
        "crash.regex",
        "texts that make a careless pattern take for ever",
        "limiter",
        package(
            units__py="X = "
            + repr("test_" * 20000 + "!")
            + "\nY = "
            + repr("a." * 50000)
            + "\nZ = "
            + repr("/tests/" * 20000)
            + "\n",
            init=DOC + PAYLOAD,
        ),
    ),
    Attempt(
        "crash.xml",
        "a report nested very deep",
        "limiter",
        lambda w: (package(init=DOC + PAYLOAD)(w), (w / "junit.xml").write_bytes(b"<testsuite>" + b"<a>" * 300000))[0],
    ),
    Attempt(
        "crash.toml",
        "a configuration nested very deep",
        "limiter",
        lambda w: (package(init=DOC + PAYLOAD)(w), (w / "pyproject.toml").write_text("x = " + "[" * 90000))[0],
    ),
    Attempt(
        "crash.full",
        "sources that keep the tools of the full profile busy",
        "limiter",
        package(
            units__py="X = "
            + " + ".join(["'a'"] * 2900)
            + "\n"
            + "x = 0\nif x == 0:\n    pass\n"
            + "".join(f"elif x == {n}:\n    pass\n" for n in range(900))
            + "Y = f"
            + "()" * 900
            + "\n",
            init=DOC + PAYLOAD,
        ),
        profile="full",
    ),
]
