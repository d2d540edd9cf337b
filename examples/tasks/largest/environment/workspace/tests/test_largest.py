from largest import largest


def test_the_last_one() -> None:
    assert largest([1, 2, 3]) == 3


def test_the_first_one() -> None:
    assert largest([9, 2, 3]) == 9


def test_only_one() -> None:
    assert largest([4]) == 4


def test_two() -> None:
    assert largest([5, 6]) == 6


def test_large_numbers() -> None:
    assert largest([100, 2000, 30]) == 2000
