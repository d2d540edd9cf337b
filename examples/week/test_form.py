from scorebook.form import for_team
from scorebook.results import parse_results

SHEET = parse_results("Reds 2-1 Blues\nGreens 0-0 Reds\nBlues 3-0 Reds\nReds 1-0 Greens")


def test_matches_at_home_and_away_count() -> None:
    assert for_team(SHEET, "Reds") == "WDLW"


def test_only_the_last_ones_are_told() -> None:
    assert for_team(SHEET, "Reds", last=2) == "LW"


def test_a_team_that_has_not_played_has_no_form() -> None:
    assert for_team(SHEET, "Browns") == ""
