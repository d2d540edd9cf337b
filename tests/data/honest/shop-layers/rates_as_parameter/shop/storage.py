"""What the shop keeps on disk."""

import json
from pathlib import Path

from shop.pricing import tax

RATES = Path(__file__).with_name("rates.json")


def load_rates() -> dict[str, int]:
    """The tax rate of each region, in percent."""
    rates: dict[str, int] = json.loads(RATES.read_text(encoding="utf-8"))
    return rates


def regions() -> list[str]:
    """Where the shop sells, the region with the lowest tax on 100.00 first."""
    rates = load_rates()
    return sorted(rates, key=lambda region: (tax([("sample", 10_000, 1)], region, rates), region))
