import pytest

from workdays import add_workdays, is_workday, workdays_between

WINTER = ["2023-12-25", "2023-12-26", "2024-01-01", "2023-12-31", "2023-12-25"]


def test_none_on_a_free_day_goes_forward():
    assert add_workdays("2023-12-23", 0, WINTER) == "2023-12-27"


def test_ten_days_over_the_winter():
    assert add_workdays("2023-12-20", 10, WINTER) == "2024-01-08"


def test_back_over_the_winter():
    assert add_workdays("2024-01-02", -4, WINTER) == "2023-12-22"


def test_a_start_on_a_weekend_is_not_counted():
    assert add_workdays("2024-06-08", 1, []) == "2024-06-10"
    assert add_workdays("2024-06-09", -1, []) == "2024-06-07"


def test_repeated_and_weekend_holidays_count_once():
    assert workdays_between("2023-12-18", "2024-01-05", WINTER) == 12


def test_one_day():
    assert workdays_between("2024-06-12", "2024-06-12", []) == 1
    assert workdays_between("2024-06-15", "2024-06-15", []) == 0


def test_a_holiday_that_is_no_date():
    with pytest.raises(ValueError):
        is_workday("2024-06-12", ["christmas"])
