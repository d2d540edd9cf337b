from largest import largest


def test_one_in_the_middle() -> None:
    assert largest([1, 8, 3]) == 8


def test_negative_numbers() -> None:
    assert largest([-5, -2, -9]) == -2


def test_the_same_twice() -> None:
    assert largest([7, 7]) == 7
