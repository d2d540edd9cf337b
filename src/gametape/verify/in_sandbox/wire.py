"""Plain data as bytes, for two processes of which one is hostile.

Only exact builtin types and a few immutable value types cross, and they are decoded as exactly those types: no value
can carry code or an overridden method. For other values (handles, callbacks, exceptions) the writer's `extend` function
gives a kind and plain fields, and the reader's `hook` turns these into an object.

For any bytes, `decode` returns or raises WireError, in time and memory bounded by the constants below. It uses no
recursion, shares nothing between parts of a value (so a small frame cannot represent a huge structure), and refuses
keys made to collide.

The writer reduces an instance of a subclass of a builtin, if it has no stand-in, to the base type's own data with the
base type's own methods, and overridden methods have no effect.
"""

from __future__ import annotations

import collections
import itertools
import struct
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .wire_bases import data_base
from .wire_containers import (
    Unbuilt,
    Unsendable,
    WireError,
    build_counter,
    build_defaults,
    build_deque,
    build_dict,
    build_items,
    spread,
)
from .wire_values import NAMED_TYPES, TYPE_NAMES, VALUES, value_kind

__all__ = ["MOST_BYTES", "MOST_MEMORY", "Unsendable", "WireError", "decode", "encode"]

MOST_BYTES = 32 << 20
"""The longest frame."""
MOST_MEMORY = 256 << 20
"""What one decoded frame may take, by a generous estimate."""
MOST_DEPTH = 2000
MOST_INT_BYTES = 128 << 10

Extend = Callable[[Any], tuple[int, Any] | None]
Hook = Callable[[int, Any], Any]


_NONE, _TRUE, _FALSE, _ELLIPSIS, _NOT_IMPLEMENTED = b"NTFE!"
_INT, _BIG, _FLOAT, _COMPLEX, _STR, _BYTES, _BYTEARRAY, _TYPE = b"iIfcsbBt"
_LIST, _TUPLE, _DICT, _SET, _FROZENSET, _RANGE, _SLICE, _DEQUE = b"[({<>r:q"
_KEYS, _ITEMS, _VALUES, _VALUE, _EXTENSION = b"klvVX"
_ORDERED, _COUNTER, _DEFAULTS = b"oCd"

_LONG = struct.Struct(">q")
_DOUBLE = struct.Struct(">d")
_TWO_DOUBLES = struct.Struct(">dd")


def _count(out: bytearray, number: int) -> None:
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)


def _write_int(out: bytearray, value: int) -> None:
    if -(1 << 63) <= value < 1 << 63:
        out.append(_INT)
        out += _LONG.pack(value)
        return
    size = value.bit_length() // 8 + 1
    if size > MOST_INT_BYTES:
        raise Unsendable(f"an int of {size} bytes is too large to send")
    _write_bytes(out, value.to_bytes(size, "big", signed=True), _BIG)


def _write_bytes(out: bytearray, value: bytes | bytearray, tag: int = _BYTES) -> None:
    out.append(tag)
    _count(out, len(value))
    out += value


_SCALARS: dict[type, Callable[[bytearray, Any], None]] = {
    type(None): lambda out, _: out.append(_NONE),
    bool: lambda out, value: out.append(_TRUE if value else _FALSE),
    type(Ellipsis): lambda out, _: out.append(_ELLIPSIS),
    type(NotImplemented): lambda out, _: out.append(_NOT_IMPLEMENTED),
    int: _write_int,
    float: lambda out, value: out.extend(b"f" + _DOUBLE.pack(value)),
    complex: lambda out, value: out.extend(b"c" + _TWO_DOUBLES.pack(value.real, value.imag)),
    str: lambda out, value: _write_bytes(out, value.encode("utf-8", "surrogatepass"), _STR),
    bytes: _write_bytes,
    bytearray: lambda out, value: _write_bytes(out, value, _BYTEARRAY),
}

_VIEWS: dict[type, int] = {type({}.keys()): _KEYS, type({}.items()): _ITEMS, type({}.values()): _VALUES}


def _pairs(items: Iterable[tuple[Any, Any]]) -> Iterator[Any]:
    for key, value in items:
        yield key
        yield value


_CONTAINERS: dict[type, tuple[int, Callable[[Any], Iterator[Any]]]] = {
    list: (_LIST, list.__iter__),
    tuple: (_TUPLE, tuple.__iter__),
    dict: (_DICT, lambda value: _pairs(dict.items(value))),
    collections.OrderedDict: (_ORDERED, lambda value: _pairs(value.items())),
    collections.Counter: (_COUNTER, lambda value: _pairs(value.items())),
    collections.defaultdict: (
        _DEFAULTS,
        lambda value: itertools.chain((value.default_factory,), _pairs(value.items())),
    ),
    set: (_SET, set.__iter__),
    frozenset: (_FROZENSET, frozenset.__iter__),
    **{kind: (tag, iter) for kind, tag in _VIEWS.items()},
}

_DICTS = (dict, collections.OrderedDict, collections.Counter, collections.defaultdict)
_MUTABLE = (list, set, bytearray, *_DICTS)


def _stand_in(value: Any, extend: Extend | None) -> Any:
    """What is encoded for a value that has no exact builtin type: its parts, or the reduced value."""
    kind = type(value)
    if kind is Unbuilt:
        return value
    if kind in (range, slice):
        return Unbuilt(_RANGE if kind is range else _SLICE, -1, (value.start, value.stop, value.step))
    if kind is collections.deque:
        return Unbuilt(_DEQUE, -1, (value.maxlen, list(value)))
    number = value_kind(kind)
    if number is not None:
        return Unbuilt(_VALUE, number, (VALUES[number].fields(value),))
    if extend is not None:
        extended = extend(value)
        if extended is not None:
            return Unbuilt(_EXTENSION, extended[0], (extended[1],))
    return _reduced(value)


def _reduced(value: Any) -> Any:
    kind = type(value)
    if kind is types.MappingProxyType:
        return {key: value[key] for key in value}
    base = data_base(kind)
    if base is None or base.plain is types.NoneType:
        raise Unsendable(f"{kind.__module__}.{kind.__qualname__} is not plain data")
    return base.read(value)


def encode(root: Any, extend: Extend | None = None, mutables: list[Any] | None = None) -> bytes:
    """The bytes of a value. `mutables` collects its lists, dicts, sets and bytearrays, in the order in which `decode`
    numbers them. Raises Unsendable for a value that cannot cross."""
    out = bytearray()
    stack: list[Iterator[Any]] = [iter((root,))]
    while stack:
        for item in stack[-1]:
            value = item
            kind = type(value)
            if kind not in _SCALARS and kind not in _CONTAINERS:
                if isinstance(value, type) and value in TYPE_NAMES:
                    _write_bytes(out, TYPE_NAMES[value].encode(), _TYPE)
                    continue
                value = _stand_in(value, extend)
                if type(value) is Unbuilt:
                    out.append(value.tag)
                    if value.kind >= 0:
                        out.append(value.kind)
                    if value.tag == _DEFAULTS:
                        _count(out, len(value.items) // 2)
                    stack.append(iter(value.items))
                    break
                kind = type(value)
            if mutables is not None and kind in _MUTABLE:
                mutables.append(item)
            scalar = _SCALARS.get(kind)
            if scalar is not None:
                scalar(out, value)
                continue
            tag, children = _CONTAINERS[kind]
            out.append(tag)
            _count(out, len(value))
            stack.append(children(value))
            break
        else:
            stack.pop()
        if len(stack) > MOST_DEPTH:
            raise Unsendable(f"nested deeper than {MOST_DEPTH} levels")
        if len(out) > MOST_BYTES:
            raise Unsendable(f"larger than {MOST_BYTES} bytes")
    return bytes(out)


def decode(data: bytes, hook: Hook | None = None, mutables: list[Any] | None = None, lax: bool = False) -> Any:
    """The value of some bytes, or WireError. A WireError or TimeoutError of `hook` passes through. With `lax`, a value
    that cannot be built of its parts is given as `Unbuilt`."""
    if len(data) > MOST_BYTES:
        raise WireError(f"a frame of {len(data)} bytes")
    try:
        return _Reader(data, hook, mutables, lax).read()
    except (WireError, TimeoutError):
        raise
    except IndexError:
        raise WireError("a frame that ends too early") from None
    except Exception as error:
        raise WireError(f"a frame that cannot be read: {type(error).__name__}: {str(error)[:200]}") from None


class _Open:
    """A container that is being read."""

    __slots__ = ("items", "kind", "missing", "slot", "tag")

    def __init__(self, tag: int, kind: int, missing: int, slot: int) -> None:
        self.tag, self.kind, self.missing, self.slot = tag, kind, missing, slot
        self.items: list[Any] = []


_HASHED = (_DICT, _SET, _FROZENSET, _KEYS, _ITEMS, _VALUES, _ORDERED, _COUNTER, _DEFAULTS)
_CHILDREN = {
    _LIST: 1,
    _TUPLE: 1,
    _DICT: 2,
    _ORDERED: 2,
    _COUNTER: 2,
    _DEFAULTS: 2,
    _SET: 1,
    _FROZENSET: 1,
    _KEYS: 1,
    _ITEMS: 1,
    _VALUES: 1,
}
_FIXED = {_RANGE: 3, _SLICE: 3, _DEQUE: 2, _VALUE: 1, _EXTENSION: 1}
_CONSTANTS: dict[int, Any] = {
    _NONE: None,
    _TRUE: True,
    _FALSE: False,
    _ELLIPSIS: Ellipsis,
    _NOT_IMPLEMENTED: NotImplemented,
}


class _Reader:
    """Reads one value and counts the memory that it takes."""

    def __init__(self, data: bytes, hook: Hook | None, mutables: list[Any] | None, lax: bool) -> None:
        self.data = data
        self.hook = hook
        self.mutables = mutables
        self.lax = lax
        self.at = 0
        self.room = MOST_MEMORY

    def read(self) -> Any:
        stack: list[_Open] = []
        while True:
            tag = self.data[self.at]
            self.at += 1
            self.room -= 64
            if self.room < 0:
                raise WireError("a frame that would take too much memory")
            if tag in _CHILDREN or tag in _FIXED:
                container = self._open(tag)
                if container.missing:
                    stack.append(container)
                    if len(stack) > MOST_DEPTH:
                        raise WireError("a frame that is nested too deeply")
                    continue
                value = self._close(container)
            else:
                value = self._scalar(tag)
            while stack:
                top = stack[-1]
                top.items.append(value)
                top.missing -= 1
                if top.missing:
                    break
                stack.pop()
                value = self._close(top)
            else:
                if self.at != len(self.data):
                    raise WireError("a frame that goes on after its value")
                return value

    def _length(self) -> int:
        number = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
            if shift > 28:
                raise WireError("a length that is too long")
        if number > len(self.data) - self.at:
            raise WireError("a length that is longer than its frame")
        return number

    def _take(self, size: int) -> bytes:
        start = self.at
        self.at += size
        if self.at > len(self.data):
            raise WireError("a frame that ends too early")
        return self.data[start : self.at]

    def _scalar(self, tag: int) -> Any:
        if tag == _INT:
            return _LONG.unpack(self._take(8))[0]
        if tag in _CONSTANTS:
            return _CONSTANTS[tag]
        if tag == _FLOAT:
            return _DOUBLE.unpack(self._take(8))[0]
        if tag == _COMPLEX:
            return complex(*_TWO_DOUBLES.unpack(self._take(16)))
        data = self._take(self._length())
        self.room -= 4 * len(data)
        return self._of_bytes(tag, data)

    def _of_bytes(self, tag: int, data: bytes) -> Any:
        if tag == _STR:
            return data.decode("utf-8", "surrogatepass")
        if tag == _BYTES:
            return data
        if tag == _BYTEARRAY:
            array = bytearray(data)
            if self.mutables is not None:
                self.mutables.append(array)
            return array
        if tag == _BIG and len(data) <= MOST_INT_BYTES:
            return int.from_bytes(data, "big", signed=True)
        if tag == _TYPE:
            return NAMED_TYPES[data.decode()]
        raise WireError(f"an unknown tag, {tag}")

    def _open(self, tag: int) -> _Open:
        if tag in _FIXED:
            kind = -1
            if tag in (_VALUE, _EXTENSION):
                kind = self.data[self.at]
                self.at += 1
            return _Open(tag, kind, _FIXED[tag], -1)
        count = self._length()
        self.room -= count * (128 if tag in _HASHED else 16) + 192
        slot = -1
        if self.mutables is not None and tag in (_LIST, _DICT, _SET, _ORDERED, _COUNTER, _DEFAULTS):
            slot = len(self.mutables)
            self.mutables.append(None)
        return _Open(tag, -1, count * _CHILDREN[tag] + (tag == _DEFAULTS), slot)

    def _close(self, container: _Open) -> Any:
        tag, items = container.tag, container.items
        if tag == _LIST:
            value: Any = items
        elif tag == _TUPLE:
            value = tuple(items)
        elif tag == _EXTENSION:
            if self.hook is None:
                raise WireError("a stand-in where only plain data may come")
            value = self.hook(container.kind, items[0])
        elif self.lax and tag in (_VALUE, _DEFAULTS):
            value = _built_or_not(container)
        else:
            value = _BUILDERS[tag](container.kind, items)
        if container.slot >= 0 and self.mutables is not None:
            self.mutables[container.slot] = value
        return value


def _build_value(kind: int, items: list[Any]) -> Any:
    fields = items[0]
    if type(fields) is not tuple:
        raise WireError("a value without its fields")
    return VALUES[kind].build(*fields)


def _built_or_not(container: _Open) -> Any:
    try:
        return _BUILDERS[container.tag](container.kind, container.items)
    except (WireError, ValueError, TypeError, ArithmeticError, AttributeError):
        return Unbuilt(container.tag, container.kind, tuple(container.items))


_BUILDERS: dict[int, Callable[[int, list[Any]], Any]] = {
    _DICT: lambda _, items: build_dict(items),
    _ORDERED: lambda _, items: collections.OrderedDict(build_dict(items)),
    _COUNTER: lambda _, items: build_counter(items),
    _DEFAULTS: build_defaults,
    _SET: lambda _, items: set(spread(items)),
    _FROZENSET: lambda _, items: frozenset(spread(items)),
    _RANGE: lambda _, items: range(*items),
    _SLICE: lambda _, items: slice(*items),
    _DEQUE: build_deque,
    _KEYS: lambda _, items: dict.fromkeys(spread(items)).keys(),
    _ITEMS: build_items,
    _VALUES: lambda _, items: dict(enumerate(items)).values(),
    _VALUE: _build_value,
}
