"""The file of a heartbeat: YAML front matter, then the text that the agent is asked."""

import json
import re
from datetime import time
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import yaml
from croniter import CroniterBadDateError, croniter
from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from gametape.core.errors import BadInput
from gametape.core.validation import NO_SUCH_FIELD, problems_from
from gametape.desk.heartbeats import cadence as cadences
from gametape.desk.heartbeats.wall_clock import CronCadence, DailyHours
from gametape.record.errors import read_error

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CHARACTERS = 100_000
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


def _seconds(value: object) -> object:
    """`90`, `90s`, `10m`, `2h`, `1d`."""
    if isinstance(value, str) and (match := re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhd]?)\s*", value)):
        return float(match[1]) * _UNITS[match[2] or "s"]
    return value


Duration = Annotated[float, BeforeValidator(_seconds), Field(ge=1, le=366 * 86_400, allow_inf_nan=False)]


class _ConfigTable(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AdaptiveConfig(_ConfigTable):
    fastest: Duration
    slowest: Duration

    @model_validator(mode="after")
    def _ordered(self) -> "AdaptiveConfig":
        if self.fastest > self.slowest:
            raise ValueError("fastest must not be slower than slowest")
        return self


class CadenceConfig(_ConfigTable):
    """Exactly one of these. A heartbeat without a cadence ticks on its event only."""

    every: Duration | None = None
    cron: str | None = None
    adaptive: AdaptiveConfig | None = None

    @field_validator("cron")
    @classmethod
    def _is_cron(cls, value: str | None) -> str | None:
        if value is not None and (len(value.split()) != 5 or not croniter.is_valid(value)):
            raise ValueError(f"{value!r} is not a cron expression of five fields")
        try:
            croniter(value or "* * * * *").get_next()
        except CroniterBadDateError:
            raise ValueError(f"{value!r} names no day that exists") from None
        return value

    @model_validator(mode="after")
    def _is_one(self) -> "CadenceConfig":
        if sum(kind is not None for kind in (self.every, self.cron, self.adaptive)) != 1:
            raise ValueError("a cadence is one of every, cron, adaptive")
        return self


class ActiveHours(_ConfigTable):
    start: time = Field(alias="from")
    end: time = Field(alias="to")
    days: tuple[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"], ...] = _DAYS  # type: ignore[assignment]

    @field_validator("start", "end", mode="before")
    @classmethod
    def _clock(cls, value: object) -> object:
        """YAML reads 9:30 as the number 570, in base sixty."""
        if isinstance(value, int) and not isinstance(value, bool):
            hour, minute = divmod(value, 60)
            return f"{hour:02}:{minute:02}"
        return value


class GitRef(_ConfigTable):
    repository: Path
    ref: str = "HEAD"


class McpSource(_ConfigTable):
    """A tool of an MCP server, which is started in a sandbox over the workspace at each check and then stopped."""

    command: Annotated[tuple[str, ...], Field(min_length=1)]
    tool: Annotated[str, Field(min_length=1)]
    arguments: dict[str, Any] = Field(default_factory=dict)


class EventConfig(_ConfigTable):
    """Sources that are checked without a model; a change makes the heartbeat tick."""

    files: tuple[str, ...] = ()
    """Paths or globs in the workspace."""
    git_ref: GitRef | None = None
    command: str = ""
    """Run in a sandbox over the workspace; a change of its output is an event."""
    heartbeat: str = ""
    """The name of another heartbeat; an answer of its agent is an event."""
    mcp: McpSource | None = None
    """A tool; a change of its answer is an event."""
    every: Duration = 5.0
    """The interval between two checks."""

    @model_validator(mode="after")
    def _is_something(self) -> "EventConfig":
        if not (self.files or self.git_ref or self.command or self.heartbeat or self.mcp):
            raise ValueError("an event is one or more of files, git_ref, command, heartbeat, mcp")
        return self


class HeartbeatBudget(_ConfigTable):
    """Per day in the heartbeat's time zone. What is not named has no limit. `usd` is another name of `cost`."""

    tokens: Annotated[int, Field(ge=0)] | None = None
    usd: Annotated[float, Field(ge=0)] | None = Field(default=None, validation_alias=AliasChoices("cost", "usd"))


class HeartbeatConfig(_ConfigTable):
    model: str = ""
    """The model of the heartbeat's own thread. Where none is named, `heartbeat add` writes down the usual one."""
    cadence: CadenceConfig | None = None
    event: EventConfig | None = None
    active_hours: ActiveHours | None = None
    timezone: str = "UTC"
    guard: str = ""
    """A command in a sandbox over the workspace. The agent is asked only if it exits with 0."""
    budget: HeartbeatBudget = HeartbeatBudget()
    thread: str = ""
    """The thread to ask in; the heartbeat's own where none is named."""
    workspace: Path | None = None
    local_only: bool = False
    notify: bool = True
    """Whether a person is notified of the agent's answer."""
    digest: bool = False
    """Tell what the agents of the desk did, what they cost and what is worth a worry, in place of asking one."""
    text: Annotated[str, Field(max_length=_CHARACTERS)]

    @field_validator("timezone")
    @classmethod
    def _is_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ValueError(f"{value!r} is not a time zone such as Europe/Berlin") from None
        return value

    @model_validator(mode="after")
    def _can_tick(self) -> "HeartbeatConfig":
        if self.cadence is None and self.event is None:
            raise ValueError("without cadence or event it would never tick")
        if self.digest and (self.model or self.thread or self.text):
            raise ValueError("a digest asks no agent: it has no model, no thread and no text")
        if not self.digest and not self.text:
            raise ValueError("the text for the agent is missing below the front matter")
        event = self.event
        if self.workspace is None and (self.guard or (event and (event.files or event.command or event.mcp))):
            raise ValueError("guard, files, command and mcp need a workspace")
        return self

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)

    @property
    def cadence_rule(self) -> cadences.Cadence:
        match self.cadence:
            case None:
                return None
            case CadenceConfig(every=float(every)):
                return cadences.FixedCadence(every)
            case CadenceConfig(adaptive=AdaptiveConfig() as adaptive):
                return cadences.AdaptiveCadence(adaptive.fastest, adaptive.slowest)
            case CadenceConfig(cron=expression):
                return CronCadence(str(expression), self.zone)

    @property
    def hours(self) -> DailyHours | None:
        if (active := self.active_hours) is None:
            return None
        return DailyHours(active.start, active.end, frozenset(_DAYS.index(day) for day in active.days), self.zone)


def check_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise BadInput(f"{name!r}: a heartbeat's name is of a-z, 0-9 and '-', at most 64 characters")
    return name


def parse_config(content: str, where: str) -> HeartbeatConfig:
    """Parse a file's content; `where` names the file in errors. Raises `BadInput` with a message of one line."""
    match = re.fullmatch(r"---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n(.*))?", content, re.DOTALL)
    if not match:
        raise BadInput(f"{where}: expected front matter between two lines of ---, then the text for the agent")
    try:
        matter = yaml.safe_load(match[1]) or {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadInput(f"{where}: the front matter is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(matter, dict):
        raise BadInput(f"{where}: the front matter is not a table of names and values")
    try:
        return HeartbeatConfig.model_validate({**matter, "text": (match[2] or "").strip()})
    except ValidationError as error:
        raise BadInput(f"{where}: {_first_fault(error, matter)}") from None


def _first_fault(error: ValidationError, matter: dict[str, Any]) -> str:
    first, problem = error.errors()[0], problems_from(error, matter)[0]
    if problem.expected == NO_SUCH_FIELD:
        known = ", ".join(name for name in HeartbeatConfig.model_fields if name != "text")
        return f"{problem.path}: there is no such setting{'' if '.' in problem.path else f' (there are: {known})'}"
    if first["type"] == "value_error":
        return f"{problem.path}: ".removeprefix(": ") + first["msg"].removeprefix("Value error, ")
    return str(problem)


def with_model(content: str, model: str) -> str:
    """The content of a file that names no model, with this one."""
    first, rest = content.split("\n", 1)
    return f"{first}\nmodel: {json.dumps(model)}\n{rest}"


def load_config(path: Path) -> HeartbeatConfig:
    try:
        return parse_config(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not a text file: byte {error.start} is not UTF-8") from None
    except OSError as error:
        raise read_error(path, error) from None
