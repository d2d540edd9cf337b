"""A small workspace with a broken function, and goals over it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gametape.record.source_tree import SourceTree

SUCCESS = "pytest -q"
BY_EXIT_CODE = "python3 -c 'import shop; assert shop.total([1, 2]) == 3'"
"""For tests of anything but the judge: what pytest does is observed test by test, which takes several times as long."""
PRODUCT = """\
def total(prices):
    return sum(prices) + 1


def cheapest(prices):
    return min(prices)
"""
MENDED = PRODUCT.replace(" + 1", "")
TESTS = """\
import pytest

from shop import cheapest, total


@pytest.mark.parametrize(("prices", "expected"), [([], 0), ([1, 2], 3), ([5, 5], 10)])
def test_total(prices, expected):
    assert total(prices) == expected


def test_total_of_one():
    assert total([7]) == 7


def test_cheapest():
    assert cheapest([3, 2, 5]) == 2


@pytest.mark.skip(reason="not today")
def test_later():
    assert total([]) == 1


@pytest.mark.xfail(reason="known")
def test_known():
    assert cheapest([3]) == 4
"""
FILES = {
    "shop.py": PRODUCT,
    "tests/test_shop.py": TESTS,
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-q'\n",
}
START = SourceTree({path: text.encode() for path, text in FILES.items()})


def lay(directory: Path, changes: Mapping[str, str | None] | None = None, runs: Sequence[str] = ()) -> Path:
    """The workspace, with some files changed, added or (None) removed, and some of them made programs."""
    for path, text in {**FILES, **(changes or {})}.items():
        if text is not None:
            target = directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
            target.chmod(0o755 if path in runs else 0o644)
    return directory


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"text": "", "tool_calls": [{"name": name, "arguments": arguments}]}


def write(path: str, content: str) -> dict[str, Any]:
    return call("write", path=path, content=content)


DONE = call("finish", summary="done", confidence=0.9)


def script(path: Path, turns: Sequence[dict[str, Any]]) -> str:
    """The name of a model that says these turns."""
    path.write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    return f"scripted:{path}"
