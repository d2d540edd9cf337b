"""Scaling as an object: `Scale(2) @ 21` is 42."""


class Scale:
    __slots__ = ("factor",)

    def __init__(self, factor):
        self.factor = factor

    def __matmul__(self, number):
        return number * self.factor

    __call__ = __matmul__

    def __mul__(self, other):
        return Scale(self.factor * other.factor)

    def __repr__(self):
        return f"Scale({self.factor!r})"


double = Scale(2).__call__
