import pytest
from scorebook.clock import format_clock, half_of, parse_clock


@pytest.mark.parametrize(("text", "seconds"), [("47:10", 2830), ("0:05", 5), ("47", 2820), ("90+3", 5580)])
def test_a_time_is_read(text: str, seconds: int) -> None:
    assert parse_clock(text) == seconds


@pytest.mark.parametrize("text", ["", "half past", "47:1", "-1", "47:100", "90+", "1:2:3"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a time"):
        parse_clock(text)


def test_a_minute_has_sixty_seconds() -> None:
    with pytest.raises(ValueError, match="60 seconds"):
        parse_clock("47:60")


@pytest.mark.parametrize(("seconds", "text"), [(2830, "47:10"), (0, "0:00"), (5, "0:05"), (6000, "100:00")])
def test_a_time_is_written(seconds: int, text: str) -> None:
    assert format_clock(seconds) == text


def test_time_does_not_run_backwards() -> None:
    with pytest.raises(ValueError, match="backwards"):
        format_clock(-1)


@pytest.mark.parametrize(("seconds", "half"), [(0, 1), (2700, 1), (2701, 2), (5400, 2), (5401, 3), (9000, 3)])
def test_which_half_it_is(seconds: int, half: int) -> None:
    assert half_of(seconds) == half
