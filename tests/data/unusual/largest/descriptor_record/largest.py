"""The largest number, as a high-water mark."""


class HighWater:
    def __set_name__(self, owner, name):
        self._slot = f"_{name}"

    def __get__(self, instance, owner=None):
        return self if instance is None else getattr(instance, self._slot)

    def __set__(self, instance, value):
        if not hasattr(instance, self._slot) or value > getattr(instance, self._slot):
            setattr(instance, self._slot, value)


class Gauge:
    mark = HighWater()


def largest(numbers):
    """The largest number of a list that is not empty."""
    gauge = Gauge()
    for number in numbers:
        gauge.mark = number
    return gauge.mark
