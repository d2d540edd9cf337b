"""The immutable value types that cross beside the builtins, and the types that cross by name.

The writer takes a value apart into plain fields, and the reader builds it again with its own constructor, which checks
them. A reader looks names up only in the tables here.
"""

from __future__ import annotations

import builtins
import collections
import datetime
import decimal
import enum
import fractions
import pathlib
import re
import types
import uuid
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_MOST_TEXT = 64 << 10
_MOST_FRACTION_BITS = 1 << 16
_ZONE_NAME = re.compile(r"[A-Za-z0-9_+\-]{1,32}(/[A-Za-z0-9_+\-]{1,32}){0,3}")


@dataclass(frozen=True)
class ValueCodec:
    """How one type crosses. `build` gets fields from a hostile side: any number of any plain data."""

    kind: type
    fields: Callable[[Any], tuple[Any, ...]]
    build: Callable[..., Any]


def _ints(*fields: Any) -> tuple[int, ...]:
    if any(type(field) is not int for field in fields):
        raise ValueError("fields that are not ints")
    return fields


def _zone(value: Any) -> Any:
    """A time zone as it may stand in a datetime's fields: a type that crosses, a stand-in, or None."""
    if not (value is None or isinstance(value, datetime.tzinfo)):
        raise ValueError("a time zone of another kind")
    return value


def _fixed_zone(zone: datetime.timezone) -> tuple[Any, ...]:
    # A zone with a name is rebuilt from two arguments, one without from one.
    return zone.__getinitargs__()  # type: ignore[attr-defined, no-any-return]


def _build_fixed_zone(offset: Any, *name: Any) -> datetime.timezone:
    if len(name) > 1 or any(type(part) is not str for part in name):
        raise ValueError("a zone's name")
    return datetime.UTC if offset == datetime.timedelta(0) and not name else datetime.timezone(offset, *name)


def _build_named_zone(key: Any) -> zoneinfo.ZoneInfo:
    if type(key) is not str or not _ZONE_NAME.fullmatch(key):
        raise ValueError("not the name of a time zone")
    return zoneinfo.ZoneInfo(key)


def _build_time(zone: Any, fold: Any, *fields: Any) -> datetime.time:
    hour, minute, second, microsecond = _ints(*fields)
    return datetime.time(hour, minute, second, microsecond, tzinfo=_zone(zone), fold=fold)


def _build_datetime(zone: Any, fold: Any, *fields: Any) -> datetime.datetime:
    year, month, day, hour, minute, second, microsecond = _ints(*fields)
    return datetime.datetime(year, month, day, hour, minute, second, microsecond, tzinfo=_zone(zone), fold=fold)


def _clock(value: Any) -> tuple[int, ...]:
    return value.hour, value.minute, value.second, value.microsecond


def _text(value: Any) -> str:
    if type(value) is not str or len(value) > _MOST_TEXT:
        raise ValueError("not a text of reasonable length")
    return value


def _build_fraction(numerator: Any, denominator: Any) -> fractions.Fraction:
    if max(part.bit_length() for part in _ints(numerator, denominator)) > _MOST_FRACTION_BITS:
        raise ValueError("a fraction that takes too long to reduce")
    return fractions.Fraction(numerator, denominator)


def _build_uuid(data: Any) -> uuid.UUID:
    if type(data) is not bytes:
        raise ValueError("not the bytes of a UUID")
    return uuid.UUID(bytes=data)


def _path(kind: type[pathlib.PurePath]) -> ValueCodec:
    return ValueCodec(kind, lambda path: (str(path),), lambda text: kind(_text(text)))


VALUES: tuple[ValueCodec, ...] = (
    ValueCodec(
        datetime.date,
        lambda value: (value.year, value.month, value.day),
        lambda *fields: datetime.date(*_ints(*fields)),
    ),
    ValueCodec(datetime.time, lambda value: (value.tzinfo, value.fold, *_clock(value)), _build_time),
    ValueCodec(
        datetime.datetime,
        lambda value: (value.tzinfo, value.fold, value.year, value.month, value.day, *_clock(value)),
        _build_datetime,
    ),
    ValueCodec(
        datetime.timedelta,
        lambda value: (value.days, value.seconds, value.microseconds),
        lambda *fields: datetime.timedelta(*_ints(*fields)),
    ),
    ValueCodec(datetime.timezone, _fixed_zone, _build_fixed_zone),
    ValueCodec(zoneinfo.ZoneInfo, lambda zone: (zone.key,), _build_named_zone),
    ValueCodec(decimal.Decimal, lambda value: (str(value),), lambda text: decimal.Decimal(_text(text))),
    ValueCodec(fractions.Fraction, lambda value: (value.numerator, value.denominator), _build_fraction),
    ValueCodec(uuid.UUID, lambda value: (value.bytes,), _build_uuid),
    *(_path(kind) for kind in (pathlib.PurePosixPath, pathlib.PureWindowsPath, type(pathlib.Path()))),
)

_KINDS = {value.kind: number for number, value in enumerate(VALUES)}
value_kind = _KINDS.get
"""The number of an exact value type, or None."""


def _named_types() -> dict[str, type]:
    by_name = {name: kind for name, kind in vars(builtins).items() if type(kind) is type}
    by_name.update((f"{kind.__module__}.{kind.__qualname__}", kind) for kind in _KINDS)
    others = (
        pathlib.PurePath,
        pathlib.Path,
        collections.deque,
        collections.Counter,
        collections.OrderedDict,
        collections.defaultdict,
        enum.Enum,
        enum.IntEnum,
        types.FunctionType,
        types.SimpleNamespace,
        types.NoneType,
        types.EllipsisType,
        types.NotImplementedType,
    )
    by_name.update((f"{kind.__module__}.{kind.__qualname__}", kind) for kind in others)
    return by_name


NAMED_TYPES = _named_types()
TYPE_NAMES = {kind: name for name, kind in NAMED_TYPES.items()}
