"""Sets of whole numbers, kept as intervals."""

import sqlite3


def parse(text: str) -> tuple[int, int]:
    """An interval from text: `3-7`, or `5` for a single number."""
    first, _, last = text.partition("-")
    return int(first), int(last or first)


_MERGE = "first <= :last + 1 AND last >= :first - 1"
_TOUCH = "first <= :last AND last >= :first"


class IntervalSet:
    """A set of whole numbers, in a table."""

    def __init__(self):
        self._db = sqlite3.connect(":memory:")
        self._db.execute("CREATE TABLE span (first INTEGER PRIMARY KEY, last INTEGER NOT NULL)")

    def _run(self, text, **names):
        return self._db.execute(text, names).fetchall()

    def add(self, first, last):
        """Put all numbers from first to last in."""
        self._check(first, last)
        low, high = self._run(f"SELECT min(first), max(last) FROM span WHERE {_MERGE}", first=first, last=last)[0]
        self._run(f"DELETE FROM span WHERE {_MERGE}", first=first, last=last)
        ends = min(first, first if low is None else low), max(last, last if high is None else high)
        self._run("INSERT INTO span VALUES (:a, :b)", a=ends[0], b=ends[1])

    def remove(self, first, last):
        """Take all numbers from first to last out."""
        self._check(first, last)
        hit = self._run(f"SELECT first, last FROM span WHERE {_TOUCH}", first=first, last=last)
        self._run(f"DELETE FROM span WHERE {_TOUCH}", first=first, last=last)
        for start, end in hit:
            for a, b in ((start, first - 1), (last + 1, end)):
                if a <= b:
                    self._run("INSERT INTO span VALUES (:a, :b)", a=a, b=b)

    @staticmethod
    def _check(first, last):
        if last < first:
            raise ValueError("last is below first")

    def intervals(self):
        """The intervals, both ends included, in order and as few as possible."""
        return self._run("SELECT first, last FROM span ORDER BY first")

    def gaps(self):
        """What is missing between the first and the last number."""
        return self._run(
            "SELECT last + 1, next - 1 FROM (SELECT last, lead(first) OVER (ORDER BY first) AS next FROM span) "
            "WHERE next IS NOT NULL ORDER BY last"
        )

    def __contains__(self, number):
        return bool(self._run("SELECT 1 FROM span WHERE :n BETWEEN first AND last", n=number))

    def __len__(self):
        return self._run("SELECT coalesce(sum(last - first + 1), 0) FROM span")[0][0]
