import pytest

from durations import parse_duration


@pytest.mark.roundtrip
def test_roundtrip(seconds, texts):
    assert [parse_duration(text) for text in texts] == seconds


@pytest.mark.parametrize("text", ["h", "1 h", "10m5", "--1h", "1h-2m"])
def test_malformed_texts(text):
    with pytest.raises(ValueError, match="malformed"):
        parse_duration(text)
