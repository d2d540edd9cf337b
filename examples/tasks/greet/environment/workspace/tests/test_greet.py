from greet import greet


def test_a_name() -> None:
    assert greet("Ada") == "Hello, Ada!"


def test_two_words() -> None:
    assert greet("Ada Lovelace") == "Hello, Ada Lovelace!"


def test_a_short_name() -> None:
    assert greet("Al") == "Hello, Al!"


def test_one_letter() -> None:
    assert greet("X") == "Hello, X!"


def test_a_small_letter() -> None:
    assert greet("eve") == "Hello, eve!"
