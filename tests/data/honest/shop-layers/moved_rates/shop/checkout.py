"""What a customer is told."""

from shop import storage
from shop.pricing import subtotal, tax


def quote(order: list[tuple[str, int, int]], region: str) -> int:
    """What a customer pays, tax included."""
    return subtotal(order) + tax(order, _rate(region))


def receipt(order: list[tuple[str, int, int]], region: str) -> str:
    """The order as text, one line for each thing and two for tax and total."""
    lines = [f"{count} x {name}" for name, _, count in order]
    lines += [f"tax {_money(tax(order, _rate(region)))}", f"total {_money(quote(order, region))}"]
    return "\n".join(lines)


def _rate(region: str) -> int:
    try:
        return storage.load_rates()[region]
    except KeyError:
        raise ValueError(f"we do not sell in {region}") from None


def _money(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02}"
