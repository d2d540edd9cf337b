from double import double


def test_an_odd_number() -> None:
    assert double(7) == 14


def test_a_large_number() -> None:
    assert double(123456) == 246912


def test_minus_one() -> None:
    assert double(-1) == -2
