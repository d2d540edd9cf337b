"""Amounts in cents that print themselves."""


class Money(int):
    """Cents. Adding two amounts gives an amount."""

    def __add__(self, other):
        return Money(int(self) + int(other)) if isinstance(other, int) else NotImplemented

    __radd__ = __add__

    def __format__(self, spec):
        return f"{self // 100}.{self % 100:02}" if spec == "m" else super().__format__(spec)

    def percent(self, rate):
        return Money(int(self) * rate // 100)
