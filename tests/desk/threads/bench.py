"""Threads over written policies, in a home of their own, spoken to without a desk around them."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

from gametape.desk.database import connect, drafts
from gametape.desk.delivery import DeliveryChannel
from gametape.desk.outbox import Outbox
from gametape.desk.threads.lifecycle import create_thread
from gametape.desk.threads.session import ThreadMessage, ThreadSession
from gametape.desk.threads.thread import Thread, ThreadDirectory, new_thread_id
from gametape.desk.threads.turn_result import ThreadTurnResult
from gametape.engines.scripted import ScriptedTurn
from tests.agent.bench import runs, says

__all__ = ["Bench", "runs", "says"]


async def never() -> bool:
    return False


class Bench:
    """A home, and a script that all of its threads follow."""

    def __init__(self, tmp_path: Path, turns: list[ScriptedTurn]) -> None:
        self.home = tmp_path / "home"
        self.home.mkdir(exist_ok=True)
        self.script = tmp_path / "script.jsonl"
        self.script.write_text("".join(json.dumps(turn.model_dump()) + "\n" for turn in turns))
        engine = connect(f"sqlite:///{tmp_path / 'desk.sqlite'}")
        drafts.metadata.create_all(engine)
        self.outbox = Outbox(engine, DeliveryChannel(), self.home / "outbox")

    def begin(self, instructions: str = "", **more: Any) -> ThreadDirectory:
        name = new_thread_id()
        thread = Thread(
            thread_id=name,
            model=more.pop("model", f"scripted:{self.script}"),
            created=time.time(),
            vault=str(self.home / "vault"),
            store=name,
            **more,
        )
        return asyncio.run(create_thread(self.home, thread, instructions))

    def say(self, directory: ThreadDirectory, text: str, key: str | None = None, **more: Any) -> ThreadTurnResult:
        speaking = ThreadSession(self.home, directory, self.outbox)
        return asyncio.run(speaking.send(ThreadMessage(text, key or text, **more), never))
