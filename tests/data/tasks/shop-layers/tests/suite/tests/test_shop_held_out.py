import pytest

from shop.checkout import quote, receipt
from shop.pricing import subtotal


def test_nine_are_not_cheaper():
    assert subtotal([("cup", 333, 9), ("cup", 333, 11)]) == 2997 + 3480


def test_tax_is_rounded_down():
    assert quote([("nail", 7, 1)], "south") == 8


def test_a_long_receipt():
    order = [("cup", 250, 12), ("tray", 1999, 1)]
    assert receipt(order, "south") == "12 x cup\n1 x tray\ntax 10.66\ntotal 59.15"


def test_a_receipt_for_an_unknown_region():
    with pytest.raises(ValueError, match="moon"):
        receipt([("cup", 1, 1)], "moon")
