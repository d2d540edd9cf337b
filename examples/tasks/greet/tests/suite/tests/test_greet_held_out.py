from greet import greet


def test_another_name() -> None:
    assert greet("Bo") == "Hello, Bo!"


def test_a_name_in_capitals() -> None:
    assert greet("BOB") == "Hello, BOB!"


def test_no_name() -> None:
    assert greet("") == "Hello, !"
