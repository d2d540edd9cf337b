"""What an order costs. Amounts are in cents; an order is a list of (name, price, count)."""


def subtotal(order):
    """The price of an order before tax; ten or more of one thing are five percent off."""
    return round(sum(price * count * (0.95 if count >= 10 else 1) for _, price, count in order))


def tax(order, rate):
    """The tax on an order at a rate in percent."""
    return round(subtotal(order) * rate / 100)
