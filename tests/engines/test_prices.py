from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.engines.prices import FREE, UNKNOWN_PRICE, Price, read_prices


def test_cached_tokens_have_their_own_price() -> None:
    assert Price(1.0, 3.0, 0.1).cost(1_000_000, 1_000_000, 500_000) == pytest.approx(0.5 + 0.05 + 3.0)
    assert Price(1.0, 3.0).cost(1_000_000, 0, 500_000) == pytest.approx(1.0)


def test_unknown_is_not_free() -> None:
    assert UNKNOWN_PRICE.cost(10, 10) == FREE.cost(10, 10) == 0
    assert FREE.known
    assert not UNKNOWN_PRICE.known


def test_prices_are_read_by_model(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    assert read_prices(file) == {}
    file.write_text('["a/b-1.5"]\ninput = 1\noutput = 3.5\n[c]\ninput = 0\noutput = 0\ncached = 0.5\n')
    assert read_prices(file) == {"a/b-1.5": Price(1.0, 3.5), "c": Price(0.0, 0.0, 0.5)}


NOT_PRICES = [
    "a = 1",
    "[a]\ninput = 1",
    "[a]\ninput = -1\noutput = 1",
    "[a]\ninput = nan\noutput = 1",
    "[a]\ninput = true\noutput = 1",
    "[a]\nx = 1",
    "[",
    "\xff",
]


@pytest.mark.parametrize("text", NOT_PRICES)
def test_a_bad_file_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(BadInput, match=r"prices\.toml"):
        read_prices(file)
