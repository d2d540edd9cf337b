"""Attempts by replay that send what no worker sends: the worker's own method is replaced."""

from tests.redteam.attempts.slugs_module import on_slugs, slugs

FORGE = """import sys


class _Odd:
    def __init__(self, kind, payload):
        self.kind, self.payload = kind, payload


def _worker():
    here = sys._getframe()
    while here is not None:
        if hasattr(here.f_locals.get("self"), "_peer"):
            return here.f_locals["self"]
        here = here.f_back


def _forge(make, operations=(4, 5)):
    worker = _worker()
    if worker is None:
        return
    wire = sys.modules[type(worker._channel).__module__.rpartition(".")[0] + ".wire"]
    honest = worker._run
    extend = lambda value: (value.kind, value.payload) if isinstance(value, _Odd) else None

    def run(number, operation, fields, changes):
        if operation not in operations:
            return honest(number, operation, fields, changes)
        return wire.encode(make(number), extend)

    worker._run = run

"""


def _forged(call: str) -> str:
    return slugs("raise ValueError", FORGE + call + "\n\n\n")


_NEST = """
def _nest(number):
    inner = bytes(SIZE)
    for _ in range(DEPTH):
        inner = _Odd(9, frozenset([inner]))
    return (1, number, inner, (), None)

"""


FORGED = [
    on_slugs(
        "forge-error-number",
        "an exception whose class has a number of 5000 digits",
        _forged("_forge(lambda number: (3, number, _Odd(7, (10**5000, (), None, '', None, {})), (), None))"),
    ),
    on_slugs(
        "forge-class-name",
        "a class whose name is a number of 5000 digits",
        _forged("_forge(lambda number: (1, number, {'name': 10**5000, 'bases': (), 'special': ()}, (), None), (11,))")
        .replace("    raise ValueError\n", "    raise Own\n")
        .replace("def slugify", "class Own(ValueError):\n    pass\n\n\ndef slugify"),
    ),
    on_slugs(
        "forge-updates",
        "changed arguments that are numbers",
        _forged("_forge(lambda number: (1, number, 'x', (1, 2), None))"),
    ),
    on_slugs(
        "forge-printed", "printed text that is a number", _forged("_forge(lambda number: (1, number, 'x', (), 5))")
    ),
    on_slugs(
        "forge-module",
        "an exception that is a module with a number for a name",
        _forged("_forge(lambda number: (3, number, _Odd(10, 10**5000), (), None))"),
    ),
    on_slugs(
        "forge-deep-error",
        "an exception that is a stand-in within many lists",
        _forged(
            "def _deep(number):\n    r = _Odd(10, 'm')\n    for _ in range(1500):\n        r = [r]\n"
            "    return (3, number, r, (), None)\n\n\n_forge(_deep)"
        ),
    ),
    on_slugs(
        "forge-number",
        "an answer with a list for a number",
        _forged("_forge(lambda number: (1, [number], 'x', (), None))"),
    ),
    on_slugs(
        "forge-nested-sets",
        "stand-ins in sets in stand-ins, with bytes within",
        _forged(_NEST.replace("SIZE", "1 << 14").replace("DEPTH", "60") + "_forge(_nest)"),
    ),
]
