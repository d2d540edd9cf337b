"""Types whose subclasses cross with their data: a named tuple as a tuple, a `class Row(dict)` as a dict.

The data of such an object is a plain value of exactly its base type, or, for the containers of `collections`, a plain
dict or list. `base_data` reads it with the base type's own methods, and `make_instance` builds an object of a subclass
from it with the base type's own constructor, so that no overridden method has a part in either.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import operator
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class DataBase:
    """How the data of one base type is read, and how an object of a subclass gets it."""

    kind: type
    plain: type
    """The exact type of the data."""
    read: Callable[[Any], Any]
    make: Callable[[type, Any], Any]
    replace: Callable[[Any, Any], None] | None = None
    """Put other data into an existing object; None for immutable types."""
    mutators: tuple[str, ...] = ()
    """The methods that change an object."""


def _immutable(base: type, read: Callable[[Any], Any]) -> DataBase:
    return DataBase(base, base, read, base.__new__)


_LIST = "append extend insert remove pop clear sort reverse __setitem__ __delitem__ __iadd__ __imul__"
_DICT = "pop popitem clear update setdefault __setitem__ __delitem__ __ior__"
_SET = """
    add discard remove pop clear update difference_update intersection_update symmetric_difference_update
    __ior__ __iand__ __isub__ __ixor__
"""


def _replace_list(target: list[Any], data: list[Any]) -> None:
    list.__setitem__(target, slice(None), data)


def _replace_bytes(target: bytearray, data: bytearray) -> None:
    bytearray.__setitem__(target, slice(None), data)


def _replace_set(target: set[Any], data: set[Any]) -> None:
    set.clear(target)
    set.update(target, data)


def _replace_dict(target: dict[Any, Any], data: dict[Any, Any]) -> None:
    own = collections.OrderedDict if isinstance(target, collections.OrderedDict) else dict
    own.clear(target)
    for key, value in data.items():
        own.__setitem__(target, key, value)


def _replace_deque(target: collections.deque[Any], data: list[Any]) -> None:
    collections.deque.clear(target)
    collections.deque.extend(target, data)


def _container(base: Any, plain: type, read: Callable[[Any], Any], replace: Any, mutators: str) -> DataBase:
    def make(kind: type, data: Any) -> Any:
        made = base.__new__(kind)
        replace(made, data)
        return made

    return DataBase(base, plain, read, make, replace, tuple(mutators.split()))


def _dictionary(base: type, read: Callable[[Any], Any], more: str = "") -> DataBase:
    return _container(base, dict, read, _replace_dict, f"{_DICT} {more}")


def _fields(base: type, value: Any, names: str) -> list[Any]:
    return [getattr(base, name).__get__(value) for name in names.split()]


_DATE = "year month day"
_CLOCK = "hour minute second microsecond tzinfo"
_SPAN = "days seconds microseconds"


def _read_date(value: Any) -> datetime.date:
    return datetime.date(*_fields(datetime.date, value, _DATE))


def _read_datetime(value: Any) -> datetime.datetime:
    base = datetime.datetime
    return base(*_fields(base, value, f"{_DATE} {_CLOCK}"), fold=base.fold.__get__(value))


def _read_time(value: Any) -> datetime.time:
    base = datetime.time
    return base(*_fields(base, value, _CLOCK), fold=base.fold.__get__(value))


def _read_timedelta(value: Any) -> datetime.timedelta:
    return datetime.timedelta(*_fields(datetime.timedelta, value, _SPAN))


def _make_date(kind: type, data: Any) -> Any:
    return datetime.date.__new__(kind, data.year, data.month, data.day)


def _make_datetime(kind: type, data: Any) -> Any:
    return datetime.datetime.__new__(
        kind,
        *_fields(datetime.datetime, data, f"{_DATE} {_CLOCK}"),
        fold=data.fold,
    )


def _make_time(kind: type, data: Any) -> Any:
    return datetime.time.__new__(kind, *_fields(datetime.time, data, _CLOCK), fold=data.fold)


def _make_timedelta(kind: type, data: Any) -> Any:
    return datetime.timedelta.__new__(kind, data.days, data.seconds, data.microseconds)


_ALL = (
    _immutable(int, int.__index__),
    _immutable(float, float.__float__),
    _immutable(complex, lambda value: complex(complex.real.__get__(value), complex.imag.__get__(value))),
    _immutable(str, str.__str__),
    _immutable(bytes, lambda value: bytes.__getitem__(value, slice(None))),
    _immutable(tuple, lambda value: tuple(tuple.__iter__(value))),
    _immutable(frozenset, lambda value: frozenset(frozenset.__iter__(value))),
    _immutable(decimal.Decimal, decimal.Decimal),
    DataBase(datetime.date, datetime.date, _read_date, _make_date),
    DataBase(datetime.datetime, datetime.datetime, _read_datetime, _make_datetime),
    DataBase(datetime.time, datetime.time, _read_time, _make_time),
    DataBase(datetime.timedelta, datetime.timedelta, _read_timedelta, _make_timedelta),
    DataBase(datetime.tzinfo, types.NoneType, lambda _: None, lambda kind, _: object.__new__(kind)),
    _container(list, list, lambda value: list(list.__iter__(value)), _replace_list, _LIST),
    _container(set, set, lambda value: set(set.__iter__(value)), _replace_set, _SET),
    _container(
        bytearray,
        bytearray,
        lambda value: bytearray(bytearray.__getitem__(value, slice(None))),
        _replace_bytes,
        _LIST,
    ),
    _dictionary(dict, lambda value: dict(dict.items(value))),
    _dictionary(collections.OrderedDict, lambda value: dict(collections.OrderedDict.items(value)), "move_to_end"),
    _dictionary(collections.defaultdict, lambda value: dict(dict.items(value)), "__missing__"),
    _dictionary(collections.Counter, lambda value: dict(dict.items(value)), "subtract"),
    _container(
        collections.deque,
        list,
        lambda value: list(collections.deque.__iter__(value)),
        _replace_deque,
        f"{_LIST} appendleft extendleft popleft rotate",
    ),
)

_BY_KIND = {base.kind: base for base in _ALL}
DATA_BASES = {f"{base.kind.__module__}.{base.kind.__qualname__}": base for base in _ALL}
DATA_BASE_NAMES = {base.kind: name for name, base in DATA_BASES.items()}


def data_base(kind: type) -> DataBase | None:
    """The base of a class whose data its objects have; None where they have none."""
    for base in kind.__mro__:
        if base in _BY_KIND:
            return _BY_KIND[base]
    return None


def elements(data: Any) -> list[Any]:
    """The elements of a container's data, keys and values alike."""
    return [part for pair in data.items() for part in pair] if type(data) is dict else list(data)


def same_elements(before: list[Any], after: list[Any]) -> bool:
    """Whether they are the same objects."""
    return len(before) == len(after) and all(map(operator.is_, before, after))
