"""Which sampler has which request: each request is owned by one sampler, and each group is delivered once.

Pure bookkeeping. A sampler is known by its epoch, a number that no other one ever gets, so that what comes late from
one that was given up counts for nothing.
"""

from collections import Counter, deque
from collections.abc import Iterator

from gametape.train.rollouts import PromptRequest

Assignment = tuple[int, PromptRequest]


class RequestLedger:
    """Orders wait here until a sampler is there for them."""

    def __init__(self) -> None:
        self._waiting: deque[PromptRequest] = deque()
        self._owned: dict[int, Counter[PromptRequest]] = {}

    @property
    def outstanding(self) -> int:
        return len(self._waiting) + sum(map(self.load, self._owned))

    def order(self, request: PromptRequest) -> None:
        self._waiting.append(request)

    def join(self, epoch: int) -> None:
        """A sampler that takes requests from now on."""
        self._owned[epoch] = Counter()

    def leave(self, epoch: int) -> list[PromptRequest]:
        """Its requests come before all that wait. Nothing of it is accepted any more."""
        orphans = list(self._owned.pop(epoch, Counter()).elements())
        self._waiting.extendleft(reversed(orphans))
        return orphans

    def load(self, epoch: int) -> int:
        return self._owned[epoch].total()

    def assign(self, expected: int = 0) -> Iterator[Assignment]:
        """Deal what waits to those with the least to do. While `expected` samplers have not joined yet, their share is
        kept for them."""
        samplers = len(self._owned) + expected
        share = -(-self.outstanding // samplers) if samplers else 0
        while self._waiting and self._owned:
            epoch = min(self._owned, key=self.load)
            if self.load(epoch) >= share:
                return
            request = self._waiting.popleft()
            self._owned[epoch][request] += 1
            yield epoch, request

    def accept(self, epoch: int, request: PromptRequest) -> bool:
        """Whether a group for this request is to be delivered when this sampler has finished it."""
        owned = self._owned.get(epoch, Counter())
        if not owned[request]:
            return False
        owned[request] -= 1
        return True
