import pytest

from shop.checkout import quote, receipt
from shop.pricing import subtotal
from shop.storage import load_rates, regions


def test_a_subtotal():
    assert subtotal([("pen", 120, 2), ("ink", 450, 1)]) == 690


def test_ten_of_one_thing_are_cheaper():
    assert subtotal([("pen", 100, 10)]) == 950


def test_a_quote_has_tax_on_it():
    assert quote([("book", 1000, 1)], "north") == 1190


def test_no_tax_on_the_island():
    assert quote([("book", 1000, 3)], "island") == 3000


def test_an_unknown_region():
    with pytest.raises(ValueError, match="atlantis"):
        quote([], "atlantis")


def test_a_receipt():
    assert receipt([("book", 1000, 1)], "north") == "1 x book\ntax 1.90\ntotal 11.90"


def test_regions_by_tax():
    assert regions() == ["island", "north", "south"]


def test_rates():
    assert load_rates()["south"] == 22


@pytest.mark.parametrize(("count", "expected"), [(1, 119), (9, 1071), (10, 1130)])
def test_quotes_before_the_change(count, expected):
    assert quote([("pen", 100, count)], "north") == expected


def test_an_empty_order():
    assert receipt([], "island") == "tax 0.00\ntotal 0.00"
