"""A goal as data, and the directory that holds everything about it.

goal.json         the request
start/            the pinned copy of the workspace
baseline.json     the results of the command over it
held-out/         tests that the agent never sees, at their paths in the judged tree
held-out.json     their results over the pinned copy
trajectory.json   the record (trajectory.jsonl while it runs)
workspace/        the best state that was reached
patch.diff        its changes
summary.md        the same as text, for a pull request
repo.git/         the branch, where the workspace has no git repository
history.git/      a copy of the workspace's git history, for the agent to read
checkpoints/      the file tree after every turn
network.jsonl     what the agent asked of the hosts that it may reach
result.json       the answer
"""

import json
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from gametape.agent.attempt_directory import AttemptDirectory
from gametape.agent.constraints import Constraints
from gametape.core.base_model import StrictModel
from gametape.core.errors import BadInput
from gametape.record.atomic import write_atomically
from gametape.record.errors import read_error
from gametape.record.source_tree import SourceTree, read_tree


class Goal(StrictModel):
    """The request. Times are seconds since the epoch."""

    goal_id: str
    workspace: str
    success: str
    model: str
    instruction: str
    created: float
    instruction_given: bool = True
    """False where the request had none, and `instruction` only repeats the command."""
    deadline: float | None = None
    budget_tokens: int | None = None
    budget_usd: float | None = None
    max_turns: int | None = None
    """Turns of one attempt."""
    max_turn_tokens: int | None = None
    max_tool_seconds: float | None = None
    attempts: int = 5
    strict: bool = False
    apply: bool = False
    local_only: bool = False
    hosts: tuple[str, ...] = ()
    """Hosts that the agent may reach through the logging proxy. The judge has none."""
    constraints: Constraints = Field(default_factory=Constraints)
    interpreter: str | None = None
    """The Python that runs the command; None is gametape's own, without pytest plugins."""
    product: tuple[str, ...] = ()
    """Paths that are the product, whatever the command does with them."""
    pin: tuple[str, ...] = ()
    """Paths that are pinned, whatever the command does with them."""
    held_out: str | None = None
    """Where in the judged tree the tests lie that the agent never sees."""
    head: str | None = None
    """The commit that was checked out in the workspace, if it is a git repository."""


@dataclass(frozen=True)
class GoalDirectory(AttemptDirectory):
    """The directory of one goal."""

    @property
    def goal(self) -> Path:
        return self.root / "goal.json"

    @property
    def start(self) -> Path:
        return self.root / "start"

    @property
    def baseline(self) -> Path:
        return self.root / "baseline.json"

    @property
    def held_out(self) -> Path:
        return self.root / "held-out"

    @property
    def held_out_baseline(self) -> Path:
        return self.root / "held-out.json"

    @property
    def summary(self) -> Path:
        return self.root / "summary.md"

    @property
    def repository(self) -> Path:
        return self.root / "repo.git"

    @property
    def history(self) -> Path:
        return self.root / "history.git"

    @property
    def result(self) -> Path:
        return self.root / "result.json"

    def read_goal(self) -> Goal:
        try:
            return Goal.model_validate_json(self.goal.read_bytes())
        except FileNotFoundError:
            raise BadInput(f"there is no goal {self.root.name}; `gametape goal list` shows those there are") from None
        except OSError as error:
            raise read_error(self.goal, error) from error
        except ValidationError as error:
            raise BadInput(f"{self.goal} is damaged: {error.errors()[0]['msg']}") from error

    def read_start(self) -> SourceTree:
        return read_tree(self.start)

    def read_workspace(self) -> SourceTree:
        """The tree of the best state."""
        return read_tree(self.workspace)

    def read_result(self) -> dict[str, Any] | None:
        """The answer; None while the goal goes on."""
        try:
            answer: dict[str, Any] = json.loads(self.result.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise BadInput(f"{self.result} cannot be read: {error}") from error
        attempts = answer.get("attempts") if isinstance(answer, dict) else None
        listed = isinstance(attempts, list) and all(isinstance(attempt, dict) for attempt in attempts)
        if not listed or not isinstance(answer.get("reached"), bool):
            raise BadInput(f"{self.result} is damaged: it is not the answer of a goal")
        return answer

    def write_result(self, answer: dict[str, Any]) -> None:
        write_atomically(self.result, json.dumps(answer, indent=2).encode())


def new_goal_id(now: float) -> str:
    """A readable id that sorts by day."""
    return f"goal-{datetime.fromtimestamp(now, UTC):%Y%m%d}-{secrets.token_hex(3)}"


def goal_directory(home: Path, goal_id: str) -> GoalDirectory:
    if not goal_id or "/" in goal_id or goal_id.startswith("."):
        raise BadInput(f"{goal_id!r} is not the id of a goal")
    return GoalDirectory(home / "goals" / goal_id)


def list_goal_directories(home: Path) -> list[GoalDirectory]:
    """Every goal, the oldest first."""
    directories = [GoalDirectory(path.parent) for path in (home / "goals").glob("*/goal.json")]
    return sorted(directories, key=lambda directory: directory.read_goal().created)
