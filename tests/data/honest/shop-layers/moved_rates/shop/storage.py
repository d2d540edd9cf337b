"""What the shop keeps."""

from shop.rates import RATES


def load_rates() -> dict[str, int]:
    """The tax rate of each region, in percent."""
    return RATES


def regions() -> list[str]:
    """Where the shop sells, the region with the lowest tax on 100.00 first."""
    return sorted(RATES, key=RATES.get)
