import pytest
from scorebook.results import Result
from scorebook.standings import Row, places, points_for, standings


@pytest.mark.parametrize(("scored", "conceded", "points"), [(1, 0, 3), (5, 4, 3), (0, 0, 1), (2, 2, 1), (0, 1, 0)])
def test_what_a_side_gets(scored: int, conceded: int, points: int) -> None:
    assert points_for(scored, conceded) == points


def test_both_sides_are_in_the_table() -> None:
    table = standings([Result("Reds", 2, 1, "Blues")])
    assert table == [Row("Reds", 1, 3, 2, 1), Row("Blues", 1, 0, 1, 2)]


def test_matches_add_up() -> None:
    table = standings([Result("Reds", 2, 1, "Blues"), Result("Blues", 0, 0, "Reds")])
    assert [(row.team, row.played, row.points) for row in table] == [("Reds", 2, 4), ("Blues", 2, 1)]


def test_difference_decides_when_points_are_level() -> None:
    table = standings([Result("Reds", 1, 0, "Blues"), Result("Greens", 4, 0, "Browns")])
    assert [row.team for row in table][:2] == ["Greens", "Reds"]


def test_goals_decide_when_differences_are_level() -> None:
    table = standings([Result("Reds", 1, 1, "Blues"), Result("Greens", 3, 3, "Browns")])
    assert [row.team for row in table] == ["Browns", "Greens", "Blues", "Reds"]


def test_nothing_played_is_an_empty_table() -> None:
    assert standings([]) == []


def test_places_count_up() -> None:
    assert places([Row("Reds", 1, 3, 2, 1), Row("Blues", 1, 0, 1, 2)]) == {"Reds": 1, "Blues": 2}


def test_level_teams_share_a_place_and_the_next_is_skipped() -> None:
    rows = [Row("Reds", 1, 1, 1, 1), Row("Blues", 1, 1, 1, 1), Row("Greens", 1, 0, 0, 1)]
    assert places(rows) == {"Reds": 1, "Blues": 1, "Greens": 3}


def test_no_rows_have_no_places() -> None:
    assert places([]) == {}
