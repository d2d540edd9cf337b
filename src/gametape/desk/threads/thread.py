"""A thread as data, and the directory that holds everything about it.

thread.json        its settings and state
AGENTS.md          the instructions that were given with it
trajectory.jsonl   the record (trajectory.json once it is archived)
trajectory.digest  what the record comes to, so that it does not have to be read whole
reply.json         the model's last reply, until its turn is recorded
network.jsonl      what the agent asked of the hosts that it may reach
checkpoints/       the file tree after every turn; a fork uses those of its origin
"""

import json
import re
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from gametape.agent.attempt_directory import AttemptDirectory
from gametape.agent.constraints import Constraints
from gametape.agent.record_digest import DigestFile
from gametape.core.base_model import StrictModel
from gametape.core.errors import BadInput, GametapeError
from gametape.core.validation import problems_from
from gametape.record.atomic import write_atomically
from gametape.record.errors import read_error
from gametape.record.installation import command_line

_ID = re.compile(r"thread-[0-9]{8}-[0-9a-f]{6}")


class ThreadRefused(GametapeError):
    """The thread takes no messages in its present state."""

    exit_code = 1


class Thread(StrictModel):
    """The settings and state of a thread. Budgets hold for its whole life, the other limits for each answer; None is
    the usual limit."""

    thread_id: str
    title: str = ""
    model: str
    created: float
    vault: str
    workspace: str | None = None
    """The directory that its files were copied from."""
    constraints: Constraints = Field(default_factory=Constraints)
    budget_tokens: int | None = Field(default=None, ge=1)
    budget_usd: float | None = Field(default=None, gt=0)
    max_turns: int | None = Field(default=None, ge=1)
    max_turn_tokens: int | None = Field(default=None, ge=1)
    max_seconds: float | None = Field(default=None, gt=0)
    max_tool_seconds: float | None = Field(default=None, gt=0)
    local_only: bool = False
    hosts: list[str] = Field(default_factory=list)
    """Hosts that the agent may reach through the logging proxy."""
    store: str
    """The thread whose directory holds the checkpoints."""
    forked_from: str | None = None
    paused: str | None = None
    """Why a person should look at it before it goes on."""
    archived: bool = False

    @property
    def state(self) -> str:
        return "archived" if self.archived else "paused" if self.paused else "open"


@dataclass(frozen=True)
class ThreadDirectory(AttemptDirectory):
    """The directory of one thread."""

    @property
    def thread_file(self) -> Path:
        return self.root / "thread.json"

    @property
    def instructions(self) -> Path:
        return self.root / "AGENTS.md"

    @property
    def digest_file(self) -> DigestFile:
        return DigestFile(self.root / "trajectory.digest")

    @property
    def reply(self) -> Path:
        return self.root / "reply.json"

    def store_of(self, thread: Thread) -> Path:
        return self.root.parent / thread.store / "checkpoints"

    def read(self) -> Thread:
        try:
            document = json.loads(self.thread_file.read_bytes())
            json.dumps(document, ensure_ascii=False).encode()
            return Thread.model_validate(document)
        except OSError as error:
            raise read_error(self.thread_file, error) from None
        except ValidationError as error:
            raise BadInput(f"{self.thread_file}: {problems_from(error, document)[0]}") from None
        except UnicodeEncodeError:
            raise BadInput(f"{self.thread_file}: has characters that are no text") from None
        except (ValueError, RecursionError) as error:
            raise BadInput(f"{self.thread_file}: not JSON: {error}") from None

    def write(self, thread: Thread) -> None:
        data = json.dumps(thread.model_dump(mode="json"), indent=1, ensure_ascii=False)
        write_atomically(self.thread_file, data.encode("utf-8", "replace") + b"\n")

    def update(self, **changes: Any) -> Thread:
        changed = self.read().model_copy(update=changes)
        self.write(changed)
        return changed


def threads_root(home: Path) -> Path:
    return home / "threads"


def thread_directory(home: Path, thread_id: str) -> ThreadDirectory:
    """The directory of an existing thread. A prefix of its id is enough if it is unique."""
    matches = [
        name for name in thread_ids(home) if name == thread_id or (len(thread_id) > 7 and name.startswith(thread_id))
    ]
    if thread_id in matches:
        matches = [thread_id]
    if len(matches) > 1:
        raise BadInput(f"{thread_id}: begins the names of {len(matches)} threads; give more of it")
    if not matches:
        raise BadInput(f"{thread_id}: no such thread; `{command_line('thread', 'list')}` shows them")
    return ThreadDirectory(threads_root(home) / matches[0])


def thread_ids(home: Path) -> list[str]:
    """The id of every thread, the oldest first."""
    try:
        entries = list(threads_root(home).iterdir())
    except FileNotFoundError:
        return []
    return sorted(entry.name for entry in entries if _ID.fullmatch(entry.name) and (entry / "thread.json").is_file())


def new_thread_id(now: float | None = None) -> str:
    return f"thread-{time.strftime('%Y%m%d', time.gmtime(now))}-{secrets.token_hex(3)}"
