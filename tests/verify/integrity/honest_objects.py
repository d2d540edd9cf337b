"""Honest styles with unusual classes and values."""

OBJECTS = {
    "a metaclass that registers": """
class Registry(type):
    known = {}

    def __new__(mcls, name, bases, space):
        made = super().__new__(mcls, name, bases, space)
        mcls.known[name] = made
        return made

    def __instancecheck__(cls, instance):
        return hasattr(instance, "price") or super().__instancecheck__(instance)

    def __eq__(cls, other):
        return isinstance(other, Registry) and cls.__name__ == other.__name__

    def __hash__(cls):
        return hash(cls.__name__)


class Item(metaclass=Registry):
    pass
""",
    "a protocol checked by its shape": """
import abc


class Priced(abc.ABC):
    @classmethod
    def __subclasshook__(cls, other):
        return True if any("price" in vars(base) for base in other.__mro__) else NotImplemented
""",
    "a transparent proxy": """
class Proxy:
    def __init__(self, inner):
        object.__setattr__(self, "_inner", inner)

    def __getattr__(self, name):
        return getattr(self._inner, name)

    @property
    def __class__(self):
        return type(self._inner)

    def __eq__(self, other):
        return self._inner == other

    def __hash__(self):
        return hash(self._inner)
""",
    "a missing value": """
class _Missing:
    def __bool__(self):
        return False

    def __repr__(self):
        return "<missing>"

    def __eq__(self, other):
        return other is self or other is None

    def __hash__(self):
        return hash(None)


MISSING = _Missing()
""",
    "an infinity": """
import functools


@functools.total_ordering
class _Infinity:
    def __eq__(self, other):
        return isinstance(other, _Infinity)

    def __lt__(self, other):
        return False

    def __hash__(self):
        return 0


INFINITY = _Infinity()
""",
    "a number that compares with a tolerance": """
class Money:
    def __init__(self, amount):
        self.amount = round(amount, 2)

    def __eq__(self, other):
        other = other.amount if isinstance(other, Money) else other
        return abs(self.amount - other) < 0.005

    def __lt__(self, other):
        return self.amount < (other.amount if isinstance(other, Money) else other)

    def __hash__(self):
        return hash(self.amount)
""",
    "operators of its own": """
class Path:
    def __init__(self, parts):
        self.parts = parts

    def __truediv__(self, other):
        return Path([*self.parts, other])

    def __eq__(self, other):
        return list(self.parts) == list(getattr(other, "parts", other))

    __hash__ = None

    def __contains__(self, part):
        return part in self.parts
""",
    "descriptors": """
class Positive:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner=None):
        return self if instance is None else getattr(instance, self.name)

    def __set__(self, instance, value):
        if value < 0:
            raise ValueError("negative")
        setattr(instance, self.name, value)
""",
    "weak references with finalizers": """
import weakref

_live = weakref.WeakSet()


class Handle:
    def __init__(self, close):
        _live.add(self)
        self._finalizer = weakref.finalize(self, close)

    def close(self):
        self._finalizer()
""",
    "context variables": """
import contextvars

current = contextvars.ContextVar("current", default=None)


def using(value, work):
    context = contextvars.copy_context()
    context.run(current.set, value)
    return context.run(work)
""",
    "tables of constants": """
ROMAN = {1: "I", 4: "IV", 5: "V", 9: "IX", 10: "X", 40: "XL", 50: "L", 90: "XC", 100: "C", 400: "CD", 500: "D"}
STATUS = {200: "OK", 201: "Created", 204: "No Content", 301: "Moved Permanently", 404: "Not Found", 418: "I'm a teapot"}
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
ACCENTS = str.maketrans("àáâäèéêëìíîïòóôöùúûüç", "aaaaeeeeiiiioooouuuuc")
""",
    "monkey patching of its own class": """
class Basket:
    def total(self):
        return 0


def _total(self):
    return sum(getattr(self, "items", []))


Basket.total = _total
""",
    "slots, copy and pickle by hand": """
class Point:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __reduce__(self):
        return Point, (self.x, self.y)

    def __copy__(self):
        return Point(self.x, self.y)

    def __eq__(self, other):
        return (self.x, self.y) == (other.x, other.y) if isinstance(other, Point) else NotImplemented

    __hash__ = None
""",
    "data in base64 with zlib": """
import base64
import json
import zlib

_TABLE = json.loads(zlib.decompress(base64.b64decode("eJyrVkpUsjLUUUpSsjKqBQAZQwNE")))
""",
    "never a number": """
def average(values):
    return sum(values) / len(values) if values else float("nan")
""",
}
