from double import double


def test_a_small_number() -> None:
    assert double(2) == 4


def test_zero() -> None:
    assert double(0) == 0


def test_one() -> None:
    assert double(1) == 2


def test_ten() -> None:
    assert double(10) == 20


def test_a_negative_number() -> None:
    assert double(-5) == -10
