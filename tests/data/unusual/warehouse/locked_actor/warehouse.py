"""What lies on the shelves, and who may have it."""

import queue
import threading
from concurrent.futures import Future


class _Actor:
    """Runs functions one after the other in a thread of its own."""

    def __init__(self):
        self._calls = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self):
        while True:
            answer, function = self._calls.get()
            try:
                answer.set_result(function())
            except BaseException as error:
                answer.set_exception(error)

    def ask(self, function):
        answer = Future()
        self._calls.put((answer, function))
        return answer.result()


class Reservation:
    """Some pieces of one item that are kept for somebody."""

    def __init__(self, actor, counts, item, count):
        self.item, self.count, self.state = item, count, "held"
        self._actor, self._counts = actor, counts

    def _end(self, state, leaving):
        if self.state != "held":
            raise RuntimeError(f"it was {self.state}")
        self.state = state
        self._counts[self.item][1] -= self.count
        self._counts[self.item][0] -= leaving

    def take(self):
        """Let the pieces leave the warehouse."""
        self._actor.ask(lambda: self._end("taken", self.count))

    def release(self):
        """Let others have the pieces."""
        self._actor.ask(lambda: self._end("released", 0))


class Warehouse:
    """Counts pieces by item."""

    def __init__(self):
        self._actor = _Actor()
        self._counts = {}

    def add(self, item, count):
        """Put pieces on the shelf."""
        if count < 1:
            raise ValueError("count must be at least 1")

        def put():
            self._counts.setdefault(item, [0, 0])[0] += count

        self._actor.ask(put)

    def on_hand(self, item):
        """How many pieces are on the shelf, reserved or not."""
        return self._actor.ask(lambda: self._counts.get(item, (0, 0))[0])

    def available(self, item):
        """How many pieces can be reserved."""
        return self._actor.ask(lambda: self._available(item))

    def _available(self, item):
        on_hand, held = self._counts.get(item, (0, 0))
        return on_hand - held

    def reserved(self, item):
        """How many pieces are held by reservations."""
        return self._actor.ask(lambda: self._counts.get(item, (0, 0))[1])

    def reserve(self, item, count):
        """Hold pieces for somebody."""

        def hold():
            if item not in self._counts:
                raise KeyError(item)
            if count < 1 or count > self._available(item):
                raise ValueError(f"{count} cannot be held")
            self._counts[item][1] += count
            return Reservation(self._actor, self._counts, item, count)

        return self._actor.ask(hold)
