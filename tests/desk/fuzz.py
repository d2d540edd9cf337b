"""Seeded inputs that nobody would write: valid files whose bytes, or whose values, are changed at random."""

import json
import random
from collections.abc import Callable
from typing import Any

_BYTES = (
    b"\xff\xfe",
    b"\0",
    b"\x1b[2J",
    b"\r\n",
    b"\xef\xbb\xbf",
    b"{",
    b"]",
    b'"',
    b"---\n",
    b"\\ud800",
    b"[" * 3_000,
    b'{"a":' * 3_000,
    b"9" * 5_000,
    b"1e999",
    b"NaN",
    b"\xf0\x9f\x98\x80",
    b"\xe2\x80\xae",
    b"a: *b\n",
    b"!!python/object:os.system\n",
    b"x" * 70_000,
)
_VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        1 << 70,
        1e308,
        float("nan"),
        float("inf"),
        "",
        "\0",
        "\ud800",
        "../../etc",
        "x" * 9_000,
    ),
    *([], {}, [[]], {"": {}}, "2026-13-45T99:99:99Z", "-1s", "0s", "thread-1", "\u202e", ["a"] * 50),
)


def changed(content: bytes, seed: int) -> bytes:
    """A content with one to four changes."""
    chance = random.Random(seed)
    for _ in range(chance.randint(1, 4)):
        content = chance.choice(_CHANGES)(content, chance)
    return content


def _flip(content: bytes, chance: random.Random) -> bytes:
    data = bytearray(content or b"x")
    for _ in range(chance.randint(1, 8)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)


def _cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randint(0, len(content))]


def _drop(content: bytes, chance: random.Random) -> bytes:
    first, last = sorted(chance.randint(0, len(content)) for _ in range(2))
    return content[:first] + content[last:]


def _repeat(content: bytes, chance: random.Random) -> bytes:
    first, last = sorted(chance.randint(0, len(content)) for _ in range(2))
    return content[:last] + content[first:]


def _insert(content: bytes, chance: random.Random) -> bytes:
    at = chance.randint(0, len(content))
    return content[:at] + chance.choice(_BYTES) + content[at:]


def _noise(_content: bytes, chance: random.Random) -> bytes:
    return chance.randbytes(chance.randint(0, 400))


def _value(content: bytes, chance: random.Random) -> bytes:
    """Another value somewhere in a JSON document, or in one of its lines."""
    lines = content.split(b"\n")
    at = chance.randrange(len(lines))
    for index, part in ((at, lines[at]), (None, content)):
        try:
            document = json.loads(part)
        except (ValueError, RecursionError):
            continue
        told = json.dumps(_replaced(document, chance)).encode()
        return told if index is None else b"\n".join([*lines[:index], told, *lines[index + 1 :]])
    return _insert(content, chance)


def _replaced(document: Any, chance: random.Random) -> Any:
    if isinstance(document, dict) and document and chance.random() < 0.9:
        name = chance.choice([*document])
        if chance.random() < 0.1:
            return {key: value for key, value in document.items() if key != name}
        return {**document, name: _replaced(document[name], chance)}
    if isinstance(document, list) and document and chance.random() < 0.9:
        at = chance.randrange(len(document))
        return [*document[:at], _replaced(document[at], chance), *document[at + 1 :]]
    return chance.choice(_VALUES)


_CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_flip, _cut, _drop, _repeat, _insert, _insert, _noise),
    *(_value, _value, _value, _value),
)
