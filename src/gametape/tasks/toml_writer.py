"""Write TOML that is pleasant to read: a table per mapping, long lists one item to a line, nothing for None."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

MAX_LINE_LENGTH = 100


def to_toml(document: Mapping[str, Any]) -> str:
    """The document as TOML. Values are strings, numbers, booleans, None (left out), lists and mappings of them."""
    return "\n".join(_table((), document)).strip("\n") + "\n"


def _table(place: tuple[str, ...], table: Mapping[str, Any]) -> Iterator[str]:
    own = {key: value for key, value in table.items() if value is not None and not _is_tables(value)}
    if place and (own or not table):
        yield f"\n[{'.'.join(map(_key, place))}]"
    for key, value in own.items():
        yield f"{_key(key)} = {_value(value)}"
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _table((*place, key), value)
        elif _is_tables(value):
            for item in value:
                yield f"\n[[{'.'.join(map(_key, (*place, key)))}]]"
                for name, inner in item.items():
                    yield f"{_key(name)} = {_value(inner)}"


def _is_tables(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, list) and bool(value) and isinstance(value[0], Mapping))


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        items = [_value(item) for item in value]
        line = f"[{', '.join(items)}]"
        return line if len(line) <= MAX_LINE_LENGTH else "[\n" + "".join(f"    {item},\n" for item in items) + "]"
    return repr(value)
