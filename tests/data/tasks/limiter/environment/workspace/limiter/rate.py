"""Rates as people write them."""

SECONDS = {"s": 1, "min": 60, "h": 3600}


def parse_rate(text: str) -> float:
    """How many a second, from text such as `30/min`."""
    count, _, unit = text.partition("/")
    if unit not in SECONDS:
        raise ValueError(f"unknown unit in {text!r}")
    return float(count) / SECONDS[unit]
