from greet import greet


def test_a_name() -> None:
    assert greet("Ada") == "Hello, Ada!"


def test_two_words() -> None:
    assert greet("Ada Lovelace") == "Hello, Ada Lovelace!"
