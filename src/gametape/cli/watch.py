"""`gametape watch`: detect when an agent falls into a phrase, a template, a tic, a loop or silence."""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gametape.cli.shared import AsJson, count_of, emit_json, printable_line

if TYPE_CHECKING:
    from gametape.watch.log_reader import LogFormat, LoggedStep
    from gametape.watch.monitor_set import MonitorSet
    from gametape.watch.report import AlarmEpisode, WatchReport

_LONGEST_NUMBER = 12
"""Digits."""
_NAMED_LOGS = 5

app = typer.Typer(rich_markup_mode=None, add_completion=False)


@app.command()
def watch(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Logs, in the order they were written.")],
    format_: Annotated[
        str, typer.Option("--format", metavar="F", help="auto, atif, jsonl (a step a line) or text (a line is a step).")
    ] = "auto",
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="PATH|N",
            help="A healthy log, or the number of first steps that are healthy (200, or a third of a short log).",
        ),
    ] = None,
    tics: Annotated[
        list[str] | None, typer.Option("--tic", metavar="REGEX", help="A tic to look for, beside the known ones.")
    ] = None,
    false_alarm: Annotated[
        int, typer.Option("--steps-to-false-alarm", metavar="N", min=1, help="The minimum on average.")
    ] = 10_000,
    follow: Annotated[bool, typer.Option("--follow", help="Continue as the file grows, until interrupted.")] = False,
    as_json: AsJson = False,
) -> None:
    """Watch an agent's behaviour over many steps. All files together are one stream of one agent.

    Reads trajectories (ATIF, ours or others', and running journals), JSON lines with `text` and optional `time`,
    `tool_calls`, `result`, `model`, chat messages and events of other tools, and plain text. Normal behaviour is
    learned from a baseline; all monitors share one rate of false alarms. With --follow, alarms are printed live.
    Of a directory its trajectories are read or, where it has none, its logs; other files are skipped.

    Exit code 0 if there is no alarm, 1 if there is one, 2 if a file cannot be read.

    Example: gametape watch --follow agent.jsonl
    """

    from gametape.core.errors import BadInput
    from gametape.watch.log_reader import find_logs, parse_log_format
    from gametape.watch.monitor_set import BASELINE, baseline_length
    from gametape.watch.report import WatchReport

    log_format = parse_log_format(format_)
    files, skipped = find_logs(paths)
    if follow and len(files) > 1:
        raise BadInput("--follow takes one file")
    steps = chain.from_iterable(_read_file(file, log_format, follow, file in paths) for file in files)
    first_steps = [] if follow else list(islice(steps, 3 * BASELINE))
    monitors = _make_monitors(
        baseline or str(baseline_length(len(first_steps)) if first_steps else BASELINE),
        tics or [],
        false_alarm,
        log_format,
    )
    told = [f"reading {_named(files)}"] if any(path.is_dir() for path in paths) else []
    told += [f"skipped {count_of(skipped, 'file')} that are not logs of an agent"] if skipped else []
    if told:
        typer.echo(f"gametape: {'; '.join(told)}", err=True)
    report = WatchReport(monitors)
    try:
        for step in chain(first_steps, steps):
            for episode in report.observe(step):
                _tell(episode, as_json, follow)
    except KeyboardInterrupt:
        if not follow:
            raise
    if as_json:
        emit_json(report.to_dict() | {"skipped": skipped})
    else:
        _show(report, monitors)
    raise typer.Exit(1 if report.episodes else 0)


def _named(files: Sequence[Path]) -> str:
    """The logs that a directory stands for; of many the first ones."""
    names = [printable_line(str(file)) for file in files[:_NAMED_LOGS]]
    more = f", and {count_of(len(files) - _NAMED_LOGS, 'more file')}" if len(files) > _NAMED_LOGS else ""
    return ", ".join(names) + more


def _read_file(file: Path, log_format: "LogFormat", follow: bool, is_named: bool) -> "Iterator[LoggedStep]":
    """The steps of a file. One of a directory that turns out to be damaged is left out from there on, and said."""
    from gametape.core.errors import BadInput
    from gametape.watch.log_reader import read_log

    try:
        yield from read_log(file, log_format, go_on=lambda: follow)
    except BadInput as error:
        if is_named:
            raise
        typer.echo(f"gametape: skipped {printable_line(str(error))}", err=True)


def _make_monitors(baseline: str, tics: list[str], false_alarm: int, log_format: "LogFormat") -> "MonitorSet":

    from gametape.core.errors import BadInput
    from gametape.watch.calibrated_monitor import monitor_specs
    from gametape.watch.monitor_set import MonitorSet
    from gametape.watch.monitors.patterns import TICS

    for tic in tics:
        try:
            re.compile(tic)
        except re.error as error:
            raise BadInput(f"--tic {tic}: not a regular expression ({error})") from None
    specs = monitor_specs((*TICS, *tics))
    if baseline.isdecimal():
        return MonitorSet(_baseline_steps_wanted(baseline), false_alarm, specs)
    monitors = MonitorSet(steps_to_false_alarm=false_alarm, monitors=specs)
    monitors.learn(step.observed for step in _baseline_steps(Path(baseline), log_format) if step.observed is not None)
    return monitors


def _baseline_steps_wanted(text: str) -> int:
    from gametape.core.errors import BadInput

    number = int(text) if len(text) <= _LONGEST_NUMBER else 0
    if not number:
        raise BadInput(f"--baseline {text[:_LONGEST_NUMBER]}: expected a number of steps from 1 on, or a log")
    return number


def _baseline_steps(path: Path, log_format: "LogFormat") -> "Iterator[LoggedStep]":
    """The steps of a baseline, whose format may differ from that of the watched log."""
    from gametape.watch.log_reader import find_logs, read_log

    for file in find_logs([path]).files:
        yield from read_log(file, "text" if log_format == "text" else "auto")


def _tell(episode: "AlarmEpisode", as_json: bool, live: bool) -> None:

    if as_json and live:
        emit_json({"alarm": episode.to_dict()})
    elif not as_json:
        typer.echo(episode.headline)
        for line in episode.details:
            typer.echo(f"    {line}")


def _show(report: "WatchReport", monitors: "MonitorSet") -> None:
    from gametape.watch.report import plot_sparklines
    from gametape.watch.text_features import printable

    for change in monitors.changes:
        text = printable(f"from {change.before} to {change.after}")
        typer.echo(f"step {change.step}: the model changed {text}: a new baseline")
    for line in plot_sparklines(report.sparklines, monitors.threshold):
        typer.echo(line)
    saturated = [channel.spec.name for channel in monitors.channels if channel.saturated]
    if saturated:
        typer.echo(f"cannot detect a change, because the baseline is already like that: {', '.join(saturated)}")
    uncalibrated = [channel.spec.name for channel in monitors.channels if channel.tolerated is None]
    if uncalibrated and not monitors.learning:
        typer.echo(f"too few steps so far for: {', '.join(uncalibrated)}")
    learning = ", still learning the baseline" if monitors.learning else ""
    typer.echo(f"{report.steps} steps, {len(report.episodes)} alarms{learning}")
