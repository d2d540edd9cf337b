"""The two ends of an actor: orders that come in by one call, and answers that are asked for by another, which waits for
them and so is a sign of life too."""

import queue
import threading
from collections.abc import Sequence
from typing import Any


class Mailbox:
    """What an actor's own thread reads from and writes to. Answers can be asked for at any time, however long the actor
    computes."""

    def __init__(self) -> None:
        self._orders: queue.Queue[Any] = queue.Queue()
        self._answers: list[Any] = []
        self._changed = threading.Condition()

    def tell(self, orders: Sequence[Any]) -> None:
        for order in orders:
            self._orders.put(order)

    def poll(self, seconds: float) -> list[Any]:
        """What was answered since the last time; waits for something up to some seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._answers, seconds)
            answers, self._answers = self._answers, []
            return answers

    def receive(self) -> Any:
        return self._orders.get()

    def send(self, answer: Any) -> None:
        with self._changed:
            self._answers.append(answer)
            self._changed.notify_all()
