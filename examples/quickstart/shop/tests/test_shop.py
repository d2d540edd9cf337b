from shop import cheapest, total


def test_total():
    assert total([1, 2]) == 3


def test_cheapest():
    assert cheapest([3, 2, 5]) == 2
