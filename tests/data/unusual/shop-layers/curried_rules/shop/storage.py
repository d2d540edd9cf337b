"""What the shop keeps on disk."""

import json
from pathlib import Path

RATES = Path(__file__).with_name("rates.json")


def load_rates():
    """The tax rate of each region, in percent."""
    return json.loads(RATES.read_text(encoding="utf-8"))


def regions():
    """Where the shop sells, the region with the lowest tax on 100.00 first."""
    rates = load_rates()
    return sorted(rates, key=lambda region: (rates[region], region))
