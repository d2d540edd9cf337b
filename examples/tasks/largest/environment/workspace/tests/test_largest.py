from largest import largest


def test_the_last_one() -> None:
    assert largest([1, 2, 3]) == 3


def test_the_first_one() -> None:
    assert largest([9, 2, 3]) == 9


def test_only_one() -> None:
    assert largest([4]) == 4
