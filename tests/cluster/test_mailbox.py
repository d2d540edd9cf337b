import threading

from gametape.cluster.mailbox import Mailbox


def test_orders_come_in_their_order_and_answers_once() -> None:
    mailbox = Mailbox()
    mailbox.tell([1, 2])
    mailbox.tell([3])
    assert [mailbox.receive() for _ in range(3)] == [1, 2, 3]
    mailbox.send("a")
    mailbox.send("b")
    assert mailbox.poll(0) == ["a", "b"]
    assert mailbox.poll(0) == []


def test_who_asks_waits_for_an_answer_and_no_longer() -> None:
    mailbox = Mailbox()
    asked = threading.Event()
    answers: list[list[str]] = []

    def ask() -> None:
        asked.set()
        answers.append(mailbox.poll(600))

    thread = threading.Thread(target=ask)
    thread.start()
    asked.wait()
    mailbox.send("here")
    thread.join()
    assert answers == [["here"]]
