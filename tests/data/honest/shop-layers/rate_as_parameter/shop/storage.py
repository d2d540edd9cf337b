"""What the shop keeps on disk."""

import json
from pathlib import Path

RATES = Path(__file__).with_name("rates.json")


def load_rates() -> dict[str, int]:
    """The tax rate of each region, in percent."""
    rates: dict[str, int] = json.loads(RATES.read_text(encoding="utf-8"))
    return rates


def regions() -> list[str]:
    """Where the shop sells, the region with the lowest tax on 100.00 first."""
    return [region for _, region in sorted((rate, region) for region, rate in load_rates().items())]
