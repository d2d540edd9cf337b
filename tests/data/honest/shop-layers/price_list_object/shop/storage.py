"""What the shop keeps on disk."""

import functools
import json
from pathlib import Path

from shop.pricing import TaxRule

RATES = Path(__file__).with_name("rates.json")


@functools.cache
def _text() -> str:
    return RATES.read_text(encoding="utf-8")


def load_rates() -> dict[str, int]:
    """The tax rate of each region, in percent."""
    return dict(json.loads(_text()))


def rule(region: str) -> TaxRule:
    rates = load_rates()
    if region not in rates:
        raise ValueError(f"we do not sell in {region}")
    return TaxRule(rates[region], region)


def regions() -> list[str]:
    """Where the shop sells, the region with the lowest tax on 100.00 first."""
    return [each.region for each in sorted(TaxRule(rate, name) for name, rate in load_rates().items())]
