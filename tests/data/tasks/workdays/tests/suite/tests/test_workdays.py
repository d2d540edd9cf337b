import pytest

from workdays import add_workdays, is_workday, quarter, workdays_between


def test_quarters():
    assert [quarter("2024-03-31"), quarter("2024-04-01"), quarter("2024-12-24")] == [1, 2, 4]


def test_a_date_that_does_not_exist_has_no_quarter():
    with pytest.raises(ValueError):
        quarter("2024-02-30")


def test_monday_to_friday():
    assert is_workday("2024-03-01", []) is True
    assert is_workday("2024-03-02", []) is False


def test_holidays():
    assert is_workday("2024-05-01", ["2024-05-01"]) is False


def test_over_a_weekend():
    assert add_workdays("2024-03-01", 1, []) == "2024-03-04"


def test_over_a_holiday():
    assert add_workdays("2024-04-30", 2, ["2024-05-01"]) == "2024-05-03"


def test_backwards():
    assert add_workdays("2024-03-04", -1, []) == "2024-03-01"


def test_none_on_a_workday_stays():
    assert add_workdays("2024-03-05", 0, []) == "2024-03-05"


def test_a_week_has_five():
    assert workdays_between("2024-03-04", "2024-03-10", []) == 5


def test_the_other_way_round():
    assert workdays_between("2024-03-10", "2024-03-04", []) == -5


def test_text_that_is_no_date():
    with pytest.raises(ValueError):
        add_workdays("tomorrow", 1, [])
