import random
from collections import Counter

from gametape.cluster.request_ledger import RequestLedger
from gametape.train.rollouts import PromptRequest


def request(number: int, purpose: str = "train") -> PromptRequest:
    return PromptRequest(number, 0, number, purpose)  # type: ignore[arg-type]


def assigned(ledger: RequestLedger, expected: int = 0) -> list[tuple[int, int]]:
    return [(epoch, one.number) for epoch, one in ledger.assign(expected)]


def test_requests_wait_for_a_sampler_and_are_dealt_evenly() -> None:
    ledger = RequestLedger()
    for number in range(4):
        ledger.order(request(number))
    assert assigned(ledger) == []
    ledger.join(1)
    ledger.join(2)
    assert assigned(ledger) == [(1, 0), (2, 1), (1, 2), (2, 3)]


def test_the_share_of_samplers_that_have_not_begun_yet_is_kept_for_them() -> None:
    ledger = RequestLedger()
    for number in range(4):
        ledger.order(request(number))
    ledger.join(1)
    assert assigned(ledger, expected=1) == [(1, 0), (1, 1)]
    assert assigned(ledger, expected=1) == []
    ledger.join(2)
    assert assigned(ledger) == [(2, 2), (2, 3)]


def test_the_requests_of_one_that_is_lost_come_first_elsewhere_and_what_it_sends_late_counts_for_nothing() -> None:
    ledger = RequestLedger()
    ledger.join(1)
    ledger.join(2)
    for number in range(4):
        ledger.order(request(number))
    assert assigned(ledger) == [(1, 0), (2, 1), (1, 2), (2, 3)]
    assert ledger.accept(1, request(0))
    assert ledger.leave(1) == [request(2)]
    ledger.order(request(4))
    assert not ledger.accept(1, request(2))
    assert assigned(ledger) == [(2, 2), (2, 4)]
    assert ledger.accept(2, request(2))
    assert not ledger.accept(2, request(2))


def test_equal_requests_are_each_delivered() -> None:
    ledger = RequestLedger()
    ledger.join(1)
    ledger.order(request(0, "held_out"))
    ledger.order(request(0, "held_out"))
    assert len(assigned(ledger)) == 2
    assert ledger.accept(1, request(0, "held_out"))
    assert ledger.accept(1, request(0, "held_out"))
    assert not ledger.accept(1, request(0, "held_out"))


def test_whatever_is_lost_each_request_is_delivered_once() -> None:
    for seed in range(200):
        dice, ledger = random.Random(seed), RequestLedger()
        playing: list[tuple[int, PromptRequest]] = []
        alive: list[int] = []
        delivered: Counter[int] = Counter()
        ordered = epoch = 0
        while delivered.total() < 30:
            match dice.choice(("order", "join", "leave", "finish", "finish", "late")):
                case "order" if ordered < 30:
                    ledger.order(request(ordered))
                    ordered += 1
                case "join" if len(alive) < 3:
                    epoch += 1
                    alive.append(epoch)
                    ledger.join(epoch)
                case "leave" if alive:
                    ledger.leave(alive.pop(dice.randrange(len(alive))))
                case "finish" | "late" if playing:
                    owner, one = playing.pop(dice.randrange(len(playing)))
                    delivered[one.number] += ledger.accept(owner, one)
                case _:
                    pass
            playing += ledger.assign()
        assert delivered == dict.fromkeys(range(30), 1)
        assert ledger.outstanding == 0
