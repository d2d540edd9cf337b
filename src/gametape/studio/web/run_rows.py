"""What the list of runs says of each: its state and its last figures, from the ends of its files alone."""

import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gametape.record.lock import held_files, is_held
from gametape.record.regular_file import open_regular, read_beginning, read_regular
from gametape.studio.sections.json_file import MOST_JSON_BYTES
from gametape.studio.step_view import count, mapping, tame_numbers, text_of
from gametape.studio.web.catalogue import FoundRun

_TAIL_BYTES = 64 << 10
_MOST_CONFIG_BYTES = 256 << 10
_LONGEST_TEXT = 200

RunState = Literal["running", "ended", "halted", "open", "reached", "not reached", "empty", "broken"]


@dataclass(frozen=True)
class RunRow:
    """One run. Figures are None where the run has none of them."""

    name: str
    kind: str
    state: str
    what: str
    """The arm, the suite, the task or the instruction."""
    model: str = ""
    changed: float = 0.0
    updates: int | None = None
    success: float | None = None
    reward: float | None = None
    alarm: str = ""
    """The last alarm that the end of the log tells of."""

    def to_dict(self) -> dict[str, Any]:
        return vars(self)


def run_rows(runs: Sequence[FoundRun]) -> list[RunRow]:
    """A row for each run, the one that changed last first."""
    held = held_files()
    return sorted((_row(run, held) for run in runs), key=lambda row: -row.changed)


def _row(run: FoundRun, held: set[tuple[int, int, int]]) -> RunRow:
    try:
        match run.place.kind:
            case "training":
                return _training(run, held)
            case "eval":
                return _evaluation(run, held)
            case "goal" | "thread":
                return _desk_job(run)
            case _:
                return _record(run, held)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:_LONGEST_TEXT]
        return RunRow(run.name, run.place.kind, "broken", reason, changed=_changed(run.place.path))


def _training(run: FoundRun, held: set[tuple[int, int, int]]) -> RunRow:
    root = run.place.path
    config = read_config(root)
    lines = [*last_lines(root / "metrics.jsonl")]
    update, score, alarm = (_last(lines, kind) for kind in ("update", "eval", "alarm"))
    state: RunState = "ended" if lines else "empty"
    if is_held(root / ".lock", held):
        state = "running"
    elif lines and lines[-1].get("kind") == "halt":
        state = "halted"
    return RunRow(
        name=run.name,
        kind="training",
        state=state,
        what=_short(config.get("arm")),
        model=_short(config.get("model")),
        changed=max(_changed(root / "metrics.jsonl"), _changed(root / "config.toml")),
        updates=count(update.get("step") or score.get("step")),
        success=_share(score.get("success")),
        reward=_share(update.get("reward")),
        alarm=_short(alarm.get("name")),
    )


def _last(lines: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    return next((line for line in reversed(lines) if line.get("kind") == kind), {})


def _evaluation(run: FoundRun, held: set[tuple[int, int, int]]) -> RunRow:
    log = run.place.path / "attempts.jsonl"
    with open_regular(log) as file:
        settings = _parsed(file.readline(_TAIL_BYTES))
    report = _read_object(run.place.path / "report.json")
    state: RunState = "running" if is_held(log, held) else "ended" if report else "halted"
    return RunRow(
        name=run.name,
        kind="eval",
        state=state,
        what=_short(settings.get("suite")),
        model=_short(settings.get("model")),
        changed=_changed(log),
        success=_share(mapping(report.get("success")).get("rate")),
    )


def _desk_job(run: FoundRun) -> RunRow:
    root, kind = run.place.path, run.place.kind
    told, result = _read_object(root / f"{kind}.json"), _read_object(root / "result.json")
    state: RunState = "open"
    if result:
        state = "reached" if result.get("reached") is True else "not reached"
    elif told.get("archived") is True:
        state = "ended"
    what = text_of(told.get("instruction") or told.get("title")).strip().partition("\n")[0]
    changed = max(_changed(root / name) for name in (f"{kind}.json", "trajectory.jsonl", "trajectory.json"))
    return RunRow(run.name, kind, state, _short(what), _short(told.get("model")), changed)


def _record(run: FoundRun, held: set[tuple[int, int, int]]) -> RunRow:
    path = run.place.trajectory or run.place.path
    state: RunState = "ended"
    if path.suffix == ".jsonl":
        state = "running" if is_held(path, held) else "halted"
    return RunRow(run.name, run.place.kind, state, path.parent.name, changed=_changed(path))


def read_config(root: Path) -> dict[str, Any]:
    """The settings of a training run; empty where there are none. ValueError for a file that is no TOML."""
    try:
        return tomllib.loads(read_beginning(root / "config.toml", _MOST_CONFIG_BYTES).decode())
    except FileNotFoundError:
        return {}
    except RecursionError:
        raise ValueError("config.toml: too many levels of nesting") from None


def last_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The whole lines at the end of a file of JSON objects, however long it is."""
    try:
        with open_regular(path) as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL_BYTES))
            lines = file.read(_TAIL_BYTES).split(b"\n")
    except FileNotFoundError:
        return
    for line in lines if size <= _TAIL_BYTES else lines[1:]:
        try:
            yield _parsed(line)
        except ValueError:
            continue


def _read_object(path: Path) -> dict[str, Any]:
    """The object in a small file; empty where there is no file."""
    try:
        return _parsed(read_regular(path, MOST_JSON_BYTES))
    except FileNotFoundError:
        return {}


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        value = tame_numbers(json.loads(data))
    except RecursionError:
        raise ValueError("too many levels of nesting") from None
    if not isinstance(value, dict):
        raise ValueError("expected a JSON object")
    return value


def _share(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _short(value: Any) -> str:
    return text_of(value)[:_LONGEST_TEXT]


def _changed(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0
