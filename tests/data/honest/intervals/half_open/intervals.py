"""Sets of whole numbers, kept as intervals."""


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


class IntervalSet:
    """A set of whole numbers."""

    def __init__(self):
        self.spans = []

    def intervals(self):
        return self.spans

    def add(self, first, last):
        if first >= last:
            raise ValueError("an interval needs at least one number")
        spans = sorted(self.spans + [(first, last)])
        self.spans = spans[:1]
        for a, b in spans[1:]:
            if a <= self.spans[-1][1]:
                self.spans[-1] = (self.spans[-1][0], max(b, self.spans[-1][1]))
            else:
                self.spans.append((a, b))

    def remove(self, first, last):
        if first >= last:
            raise ValueError("an interval needs at least one number")
        self.spans = [s for a, b in self.spans for s in ((a, min(b, first)), (max(a, last), b)) if s[0] < s[1]]

    def gaps(self):
        return [(x[1], y[0]) for x, y in zip(self.spans, self.spans[1:])]

    def __contains__(self, number):
        return any(a <= number < b for a, b in self.spans)

    def __len__(self):
        return sum(b - a for a, b in self.spans)
