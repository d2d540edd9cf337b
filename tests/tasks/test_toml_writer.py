import tomllib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gametape.tasks.toml_writer import to_toml

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
PLAIN = TEXT | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
TABLES = st.recursive(
    st.dictionaries(TEXT, PLAIN | st.lists(PLAIN)),
    lambda inner: st.dictionaries(TEXT, PLAIN | inner | st.lists(st.dictionaries(TEXT, PLAIN), min_size=1)),
    max_leaves=12,
)


@given(TABLES)
def test_what_was_written_is_read(document: dict[str, Any]) -> None:
    assert tomllib.loads(to_toml(document)) == document


def test_none_is_left_out() -> None:
    assert to_toml({"a": None, "b": {"c": 1, "d": None}}) == "[b]\nc = 1\n"


def test_it_is_pleasant_to_read() -> None:
    document = {"name": "x", "tests": {"short": ["a", "b"], "long": ["a" * 60, "b" * 60]}, "steps": [{"name": "one"}]}
    assert to_toml(document) == (
        'name = "x"\n\n[tests]\nshort = ["a", "b"]\nlong = [\n'
        f'    "{"a" * 60}",\n    "{"b" * 60}",\n]\n\n[[steps]]\nname = "one"\n'
    )
