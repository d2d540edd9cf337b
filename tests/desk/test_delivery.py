"""What leaves the desk: notifications and drafts, each once by its key, and no draft before a person approves it."""

import asyncio
import contextlib
import json
import os
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from gametape.core.errors import BadInput
from gametape.desk.delivery import DeliveryChannel, DeliveryError, load_delivery_config
from gametape.desk.desk import open_desk
from gametape.desk.jobs import Desk
from gametape.desk.outbox import AlreadyDecided


class Hook(BaseHTTPRequestHandler):
    received: ClassVar[list[tuple[str, dict[str, object]]]] = []
    status = 200

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.received.append((self.headers["Idempotency-Key"], json.loads(body)))
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hook() -> Iterator[str]:
    Hook.received, Hook.status = [], 200
    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/hook"
        server.shutdown()


def settings(home: Path, text: str) -> None:
    (home / "desk").mkdir(parents=True, exist_ok=True)
    (home / "desk" / "desk.toml").write_text(text)


def test_a_notice_is_kept_once_and_delivered_when_that_is_possible(home: Path, hook: str) -> None:
    settings(home, f'[notify]\nwebhook = "{hook}"\n')
    with open_desk(home) as desk:
        Hook.status = 503
        asyncio.run(desk.notifications.notify("k", "goal-1", "reached", "all tests pass"))
        asyncio.run(desk.notifications.notify("k", "goal-1", "reached", "all tests pass"))
        assert [(output.key, output.problem) for output in desk.notifications.since(0)] == [
            ("k", f"{hook}: answered 503")
        ]
        Hook.status = 200
        asyncio.run(desk.notifications.retry())
        asyncio.run(desk.notifications.retry())
    assert [key for key, _ in Hook.received] == ["k"] * 3, "twice refused, once taken"
    assert Hook.received[-1][1]["text"] == "all tests pass"


def test_what_is_local_is_told_to_no_webhook_elsewhere(home: Path) -> None:
    settings(home, '[notify]\nwebhook = "http://desk.invalid/hook"\n')
    with open_desk(home) as desk:
        asyncio.run(desk.notifications.notify("k", "thread-1", "paused", "secret", local_only=True))
        assert "may leave" in desk.notifications.since(0)[0].problem


def test_a_command_reads_what_is_told_and_its_failure_is_kept(tmp_path: Path) -> None:
    output = tmp_path / "told"
    asyncio.run(DeliveryChannel(command=("/bin/sh", "-c", f"cat > {output}")).deliver("k", {"text": "$(reboot)"}))
    assert json.loads(output.read_text()) == {"text": "$(reboot)", "key": "k"}
    with pytest.raises(DeliveryError, match="exit code 3 oh"):
        asyncio.run(DeliveryChannel(command=("/bin/sh", "-c", "echo oh >&2; exit 3")).deliver("k", {}))
    with pytest.raises(DeliveryError, match="No such file"):
        asyncio.run(DeliveryChannel(command=("/no/such/command",)).deliver("k", {}))


def draft(desk: Desk, key: str = "thread-1/2/draft-1") -> str:
    return desk.outbox.draft(key, "thread-1", "ann", "Hello", "How are you?")


def test_nothing_is_sent_before_a_person_says_so(home: Path, hook: str) -> None:
    settings(home, f'[outbox]\nwebhook = "{hook}"\n')
    with open_desk(home) as desk:
        name = draft(desk)
        assert draft(desk) == name, "the same key is the same draft"
        assert not Hook.received
        Hook.status = 500
        with pytest.raises(DeliveryError):
            asyncio.run(desk.outbox.approve(name))
        assert desk.outbox.get(name).state == "approved"
        Hook.status = 200
        assert asyncio.run(desk.outbox.approve(name)).state == "sent"
        assert asyncio.run(desk.outbox.approve(name)).state == "sent"
        assert len(Hook.received) == 2, "what was sent is not sent again"
        with pytest.raises(AlreadyDecided, match="sent already"):
            asyncio.run(desk.outbox.reject(name))


def approve_in_a_process(home: Path, name: str) -> int:
    """A child that approves a draft; its exit code is 0 if the draft is sent then."""
    if (child := os.fork()) == 0:
        code = 1
        with contextlib.suppress(BaseException), open_desk(home) as desk:
            code = int(asyncio.run(desk.outbox.approve(name)).state != "sent")
        os._exit(code)
    return child


def test_a_hundred_processes_that_approve_it_at_once_send_it_once(home: Path, tmp_path: Path) -> None:
    output = tmp_path / "sent"
    command = ["/bin/sh", "-c", f"cat >> {output}; echo >> {output}; sleep 0.2"]
    settings(home, f"[outbox]\ncommand = {json.dumps(command)}\n")
    with open_desk(home) as desk:
        name = draft(desk)
    children = [approve_in_a_process(home, name) for _ in range(100)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 100
    assert [json.loads(line)["key"] for line in output.read_text().splitlines()] == ["thread-1/2/draft-1"]
    assert not [*(home / "outbox").iterdir()], "no lock is left"


def test_tasks_of_one_process_that_approve_it_at_once_send_it_once(home: Path, hook: str) -> None:
    settings(home, f'[outbox]\nwebhook = "{hook}"\n')

    async def approve_often(desk: Desk, name: str) -> None:
        await asyncio.gather(*(desk.outbox.approve(name) for _ in range(50)))

    with open_desk(home) as desk:
        asyncio.run(approve_often(desk, draft(desk)))
    assert len(Hook.received) == 1


@pytest.mark.parametrize("decision", ["again", "reject"])
def test_a_person_decides_on_one_whose_sender_was_killed(home: Path, tmp_path: Path, decision: str) -> None:
    output, spare = tmp_path / "sent", tmp_path / "spare"
    command = ["/bin/sh", "-c", f"cat >> {output}; test -e {spare} || kill -9 $PPID"]
    settings(home, f"[outbox]\ncommand = {json.dumps(command)}\n")
    with open_desk(home) as desk:
        name = draft(desk)
        assert os.WTERMSIG(os.waitpid(approve_in_a_process(home, name), 0)[1]) == signal.SIGKILL
        spare.touch()
        sent = output.read_text()
        with pytest.raises(AlreadyDecided, match="may have arrived or not"):
            asyncio.run(desk.outbox.approve(name))
        assert output.read_text() == sent
        if decision == "again":
            assert asyncio.run(desk.outbox.approve(name, again=True)).state == "sent"
        else:
            assert asyncio.run(desk.outbox.reject(name)).state == "rejected"
        assert output.read_text() == sent * (2 if decision == "again" else 1)


def test_what_was_rejected_is_never_sent(home: Path) -> None:
    with open_desk(home) as desk:
        rejected, released = draft(desk), draft(desk, "other")
        asyncio.run(desk.outbox.reject(rejected, "not now"))
        with pytest.raises(AlreadyDecided, match="rejected already"):
            asyncio.run(desk.outbox.approve(rejected))
        asyncio.run(desk.outbox.approve(released))
        assert [path.stem for path in (home / "outbox").iterdir()] == [released]
        with pytest.raises(BadInput, match="no such draft"):
            desk.outbox.get("draft-1")
        with pytest.raises(BadInput, match="at most"):
            desk.outbox.draft("k", "thread-1", "ann", "s", "x" * 200_000)


def test_settings_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    for text in ("[notify", "[notify]\ncomand = ['x']", "[nofity]\nwebhook = 'x'"):
        settings(tmp_path, text)
        with pytest.raises(BadInput, match=r"desk\.toml: "):
            load_delivery_config(tmp_path)


def test_threads_of_one_process_that_approve_it_at_once_send_it_once(home: Path, hook: str) -> None:
    settings(home, f'[outbox]\nwebhook = "{hook}"\n')
    with open_desk(home) as desk:
        draft, states = desk.outbox.draft("key", "thread-1", "ann", "s", "b"), list[str]()

        def approve() -> None:
            states.append(asyncio.run(desk.outbox.approve(draft)).state)

        threads = [threading.Thread(target=approve) for _ in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (states, [key for key, _body in Hook.received]) == (["sent"] * 100, ["key"])
