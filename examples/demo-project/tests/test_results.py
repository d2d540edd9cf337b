import pytest
from scorebook.results import Result, margin, parse_result, parse_results, winner


def test_a_line_is_read() -> None:
    assert parse_result("Reds 2-1 Blues") == Result("Reds", 2, 1, "Blues")


def test_names_may_have_spaces() -> None:
    assert parse_result("Old Town  0 - 10  New Town") == Result("Old Town", 0, 10, "New Town")


def test_space_around_does_not_matter() -> None:
    assert parse_result("  Reds 0-0 Blues\n").away == "Blues"


@pytest.mark.parametrize("line", ["", "Reds Blues", "Reds 2 Blues", "2-1", "Reds two-one Blues"])
def test_what_is_no_result_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="not a result"):
        parse_result(line)


def test_nobody_plays_themselves() -> None:
    with pytest.raises(ValueError, match="themselves"):
        parse_result("Reds 2-1 Reds")


def test_a_sheet_is_read_line_by_line() -> None:
    sheet = "# first day\nReds 2-1 Blues\n\nGreens 0-0 Reds  # rain\n"
    assert [one.home for one in parse_results(sheet)] == ["Reds", "Greens"]


def test_an_empty_sheet_has_no_results() -> None:
    assert parse_results("\n# nothing yet\n") == []


def test_a_bad_line_spoils_the_sheet() -> None:
    with pytest.raises(ValueError, match="not a result"):
        parse_results("Reds 2-1 Blues\nrain\n")


@pytest.mark.parametrize(
    ("scored", "conceded", "won"), [(2, 1, "Reds"), (1, 2, "Blues"), (0, 0, None), (9, 10, "Blues")]
)
def test_who_won(scored: int, conceded: int, won: str | None) -> None:
    assert winner(Result("Reds", scored, conceded, "Blues")) == won


@pytest.mark.parametrize(("scored", "conceded", "by"), [(2, 1, 1), (0, 4, 4), (3, 3, 0)])
def test_the_margin_has_no_sign(scored: int, conceded: int, by: int) -> None:
    assert margin(Result("Reds", scored, conceded, "Blues")) == by
