"""Values that must be above a bound."""


class Above:
    """An attribute that refuses what is not above a bound."""

    def __init__(self, bound: float) -> None:
        self.bound = bound

    def __set_name__(self, owner, name):
        self.name = name

    def __get__(self, instance, owner=None):
        return self if instance is None else instance.__dict__[self.name]

    def __set__(self, instance, value):
        if not value > self.bound:
            raise ValueError(f"{self.name} must be above {self.bound}")
        instance.__dict__[self.name] = value


def at_least_one(method):
    def wrapper(self, count=1):
        if count < 1:
            raise ValueError("count must be at least 1")
        return method(self, count)

    wrapper.__name__, wrapper.__doc__ = method.__name__, method.__doc__
    return wrapper
