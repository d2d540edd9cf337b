import pytest

from durations import format_duration, parse_duration


def test_format_leaves_zero_parts_out():
    assert format_duration(3_605) == "1h5s"


def test_format_negative():
    assert format_duration(-90) == "-1m30s"


def test_one_part():
    assert parse_duration("15m") == 900


def test_several_parts():
    assert parse_duration("1h30m") == 5_400


def test_white_space_between_parts():
    assert parse_duration("  2d 4h ") == 187_200


def test_upper_case():
    assert parse_duration("1H 5S") == 3_605


def test_a_plain_number_is_seconds():
    assert parse_duration("90") == 90


def test_negative():
    assert parse_duration("-1m30s") == -90


def test_empty():
    with pytest.raises(ValueError, match="empty"):
        parse_duration("   ")


def test_unknown_unit():
    with pytest.raises(ValueError, match="unknown unit.*w"):
        parse_duration("3w")


def test_repeated_unit():
    with pytest.raises(ValueError, match="repeated.*h"):
        parse_duration("1h2h")


def test_wrong_order():
    with pytest.raises(ValueError, match="order"):
        parse_duration("5s1m")


def test_malformed():
    with pytest.raises(ValueError, match="malformed"):
        parse_duration("1.5h")
