import pytest

from durations import format_duration, parse_duration


def test_all_units():
    assert parse_duration("1d2h3m4s") == 93_784


def test_large_counts():
    assert parse_duration("100m 7s") == 6_007


def test_white_space_after_the_sign():
    assert parse_duration("- 2H") == -7_200


def test_a_negative_plain_number():
    assert parse_duration("-45") == -45


def test_a_lone_sign_is_empty():
    with pytest.raises(ValueError, match="empty"):
        parse_duration(" - ")


def test_an_unknown_unit_is_quoted_as_written():
    with pytest.raises(ValueError, match="unknown unit.*Weeks"):
        parse_duration("2d 3Weeks")


def test_a_number_without_unit_after_a_part():
    with pytest.raises(ValueError, match="malformed"):
        parse_duration("10m5")


def test_there_and_back():
    assert [parse_duration(format_duration(n)) for n in (59, 61, 86_399, 90_061)] == [59, 61, 86_399, 90_061]


@pytest.mark.parametrize(
    ("text", "fault"),
    [("  ", "empty"), ("4y", "unknown unit"), ("2m2m", "repeated"), ("1s2h", "order"), ("1.5m", "malformed")],
)
def test_a_message_names_one_fault_only(text, fault):
    with pytest.raises(ValueError) as caught:
        parse_duration(text)
    faults = ["empty", "unknown unit", "repeated", "order", "malformed"]
    assert [each for each in faults if each in str(caught.value)] == [fault]
