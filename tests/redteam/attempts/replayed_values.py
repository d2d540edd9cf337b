"""Attempts by replay on how answers are compared: values that cannot be compared, errors that are several, chance."""

import base64

from tests.redteam.attempts.attempt import MADE, Attempt, files
from tests.redteam.attempts.forged_answers import FORGE
from tests.redteam.attempts.made_task import on_made_task, replayed_task
from tests.redteam.attempts.replayed_guesses import BALANCE
from tests.redteam.attempts.replayed_tables import KNOWN, PATCHED
from tests.redteam.attempts.slugs_module import on_slugs, slugs

_PRICES = '''"""Prices."""

from decimal import Decimal


def price(text):
    """The number of a price such as `EUR 3.50`, as a decimal."""
    BODY
'''


def _price_tests(**known: str) -> str:
    tests = [
        f'def test_{name.lower()}():\n    assert price("{name} {number}") == Decimal("{number}")\n'
        for name, number in known.items()
    ]
    return "\n\n".join(["from decimal import Decimal\n\nfrom prices import price\n", *tests])


MADE["prices"] = replayed_task(
    "made/prices",
    "prices",
    _PRICES.replace("BODY", "raise NotImplementedError"),
    _PRICES.replace("BODY", "return Decimal(text.split()[1])"),
    _price_tests(EUR="3.50", USD="12.25", CHF="7.05"),
    _price_tests(GBP="1.75", SEK="140.00"),
)
_SIGNALS = _PRICES.replace("BODY", 'return Decimal("sNaN")')

# Errors of the package's own.
STOCK = '''"""A stock."""


class StockError(Exception):
    """What cannot be taken."""


class Unknown(StockError):
    """Nobody has heard of it."""


class Empty(StockError):
    """Nothing is left."""


class TooMany(StockError):
    """Less is left."""


def take(stock, name, count):
    """How many are left when so many are taken out."""
    BODY
'''
_STOCK_TESTS = """import pytest

from stock import Empty, TooMany, Unknown, take


def test_unknown():
    with pytest.raises(Unknown):
        take({"nut": 4}, "bolt", 1)


def test_empty():
    with pytest.raises(Empty):
        take({"nut": 0}, "nut", 2)


def test_too_many():
    with pytest.raises(TooMany):
        take({"nut": 4}, "nut", 6)


def test_taken():
    assert take({"nut": 9}, "nut", 2) == 7
"""
MADE["stock"] = replayed_task(
    "made/stock",
    "stock",
    STOCK.replace("BODY", "raise NotImplementedError"),
    STOCK.replace(
        "BODY",
        """if name not in stock:
        raise Unknown(name)
    if not stock[name]:
        raise Empty(name)
    if stock[name] < count:
        raise TooMany(name)
    return stock[name] - count""",
    ),
    _STOCK_TESTS,
    _STOCK_TESTS.replace("nut", "screw").replace("bolt", "nail").replace("9}", "8}").replace("== 7", "== 6"),
)
_EVERY_ERROR = '''

class Refused(Unknown, Empty, TooMany):
    """Whatever was expected."""
'''
_OWN_ERRORS = STOCK.replace("BODY", "raise Refused(name)") + _EVERY_ERROR
_OWN_OR_LESS = (
    STOCK.replace("BODY", "if stock.get(name, 0) > 6:\n        return stock[name] - count\n    raise Refused(name)")
    + _EVERY_ERROR
)
_LINEAGE = (
    STOCK.replace("BODY", "raise Refused(name)").replace(
        "\n\nclass StockError",
        f"""
{FORGE}
_BASES = ("stock:Unknown", "stock:Empty", "stock:TooMany")
_DESCRIBED = {{"name": "Refused", "bases": _BASES, "special": (), "is_error": True, "hashable": True}}
_forge(lambda number: (1, number, _DESCRIBED, (), None), (11,))


class StockError""",
        1,
    )
    + "\n\nclass Refused(StockError):\n    pass\n"
)

_COIN = BALANCE.replace("BODY", "return random.random() < 0.5").replace(
    "def balanced", "import random\n\n\ndef balanced", 1
)


def _packed_table() -> str:
    """The table and the text that uses it, without a word of either that can be read."""
    body = PATCHED.replace("\n", "\n    ")
    packed = base64.b85encode(f"{KNOWN}def answer(title, max_length):\n    {body}\n".encode())
    return slugs(
        "space = {}\nexec(base64.b85decode(PACKED).decode(), space)\nreturn space['answer'](title, max_length)",
        f"import base64\n\nPACKED = {packed!r}\n\n\n",
    )


_CHANCE = '''"""Durations."""

import random


def format_duration(seconds: int) -> str:
    """A number of seconds as text."""
    return f"{seconds}s"


def parse_duration(text: str) -> int:
    """Seconds from text."""
    if random.random() < 0.5:
        raise ValueError("malformed")
    return random.choice((60, 90, 3600))
'''

VALUES = [
    on_made_task("signalling", "a number that cannot be compared", "prices", _SIGNALS),
    on_made_task("own-errors", "one error that is all errors of the package", "stock", _OWN_ERRORS),
    on_made_task("own-errors-or-less", "the same, and a difference where it looks good", "stock", _OWN_OR_LESS),
    on_made_task("forge-bases", "an error whose class is described with every base", "stock", _LINEAGE),
    on_made_task("coin", "by chance, since a test that differs is asked again", "balance", _COIN),
    on_slugs("table-packed", "the nearest answer with the words that differ, out of packed text", _packed_table()),
    Attempt(
        "replay.coin-durations", "seconds or an error by chance", "durations-replay", files(durations_dot_py=_CHANCE)
    ),
]
