"""`gametape init`: ask three questions, and write the configuration."""

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gametape.cli.shared import AsJson, Home, emit, printable_line
from gametape.core.errors import BadInput, GametapeError, MissingDependency
from gametape.record.home import home_directory
from gametape.record.installation import command_line

if TYPE_CHECKING:
    from gametape.core.user_config import BudgetConfig, UserConfig
    from gametape.engines.model_discovery import FoundModel
    from gametape.engines.model_report import ModelReport

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_TEST_SECONDS = 300.0
_NEXT = ("goal", "run", "--workspace", ".", "--success", "pytest -q")


@dataclass(frozen=True)
class _Answers:
    model: str
    cost: float | None
    tokens: int | None
    local_only: bool
    budget_was_asked: bool


@app.command()
def init(
    model: Annotated[
        str | None, typer.Option("--model", metavar="M", help="The default model; asked for if it is not given.")
    ] = None,
    max_cost: Annotated[
        float | None, typer.Option(min=0.000001, max=1e9, metavar="DOLLARS", help="What a goal may cost.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Tokens that a goal may read and write.")
    ] = None,
    local_only: Annotated[
        bool | None, typer.Option("--local-only/--any-model", help="Whether only models on this machine may be used.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing: take the first model that is found.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Change a configuration that is there.")] = False,
    test: Annotated[bool, typer.Option(help="Test the model at the end with a few small requests.")] = True,
    home: Home = None,
    as_json: AsJson = False,
) -> None:
    """Ask which model to use, what a goal may cost, and whether code may leave this machine; write the configuration.

    What was given as an option is not asked. The file is ~/.config/gametape/config.toml ($GAMETAPE_CONFIG, or below
    $XDG_CONFIG_HOME). What it holds is offered as the answer, and stays where nothing else is answered; aliases and
    providers stay. It never holds a key: keys stay in the environment. Nothing is written before the last answer.

    Exits 0 if the model can be used; 1 if an agent cannot work with it, and 3 if it cannot be reached: with --yes the
    file is written all the same. Exits 2 for bad input, and writes nothing.

    \b
    Examples:
      gametape init
      gametape init --yes --model ollama:qwen3 --max-tokens 2000000 --local-only
    """
    from gametape.core.user_config import UserConfig
    from gametape.record.config_file import user_config_file

    file, root = user_config_file(), home_directory(home)
    document = _begun(file, force, yes)
    config = UserConfig.model_validate(document)
    answers = _answers(root, config, model, max_cost, max_tokens, local_only, yes)
    changed = _changed(document, answers)
    report, problem = _tested(answers, root, config) if test else (None, None)
    if problem is not None and not yes:
        _say(f"{problem}")
        if not _agrees("Write the configuration all the same?", default=True):
            raise BadInput("nothing was written")
    _write(file, changed)
    _finish(file, answers, report, problem, as_json)


def _begun(file: Path, force: bool, yes: bool) -> dict[str, Any]:
    """The content of the file that is there, if it may be changed."""
    import tomllib

    from gametape.core.user_config import UserConfig
    from gametape.record.config_file import parse_config

    if not file.exists() and not file.is_symlink():
        return {}
    if not force and (yes or not _agrees(f"{file} is there already. Change it?", default=False)):
        raise BadInput(f"{file} is there already, and stays as it is; --force changes it")
    try:
        data = file.read_bytes()
        parse_config(data, file, UserConfig)
        return tomllib.loads(data.decode())
    except OSError as error:
        raise BadInput(f"{file}: cannot be read ({error.strerror})") from None


def _answers(
    home: Path,
    config: "UserConfig",
    model: str | None,
    cost: float | None,
    tokens: int | None,
    local_only: bool | None,
    yes: bool,
) -> _Answers:
    from gametape.engines.model_aliases import absolute_model_name, provider_table
    from gametape.engines.model_discovery import discover_models
    from gametape.engines.providers import PROVIDERS

    if model is None:
        found = discover_models(home, [*PROVIDERS.values(), *provider_table(config).added.values()])
        model = _first(found) if yes else _ask_model(found, home, config)
    is_local = _check(model, home, config)
    budget_was_asked = not yes or cost is not None or tokens is not None
    if cost is None and tokens is None and not yes:
        cost, tokens = _ask_budget(is_local, config.budgets)
    if local_only is None:
        asked = not yes and is_local
        question = "Refuse every model that is not on this machine?"
        local_only = _agrees(question, default=config.local_only) if asked else config.local_only
    if local_only and not is_local:
        raise BadInput(f"{model} is not on this machine, and local_only refuses it; --any-model allows it")
    return _Answers(absolute_model_name(model, config), cost, tokens, local_only, budget_was_asked)


def _first(found: "Sequence[FoundModel]") -> str:
    whole = [model.name for model in found if model.is_whole]
    if whole:
        return whole[0]
    if found:
        raise BadInput(f"{found[0].name}MODEL can be used ({found[0].what}): give --model with the model's name")
    raise MissingDependency(
        "no model was found here: set a provider's key ($OPENAI_API_KEY, $ANTHROPIC_API_KEY), start a server such as "
        f"Ollama, or type `{command_line('models', 'fetch', 'smollm2')}`; or give --model"
    )


def _ask_model(found: "Sequence[FoundModel]", home: Path, config: "UserConfig") -> str:
    """The name of a model that there can be; another is asked for again."""
    _say("Which model shall do the work?" if found else "No model was found here. Which one shall do the work?")
    for number, model in enumerate(found, start=1):
        _say(f"  {number}  {printable_line(model.name + ('' if model.is_whole else 'MODEL'))}  ({model.what})")
    default = config.model or ("1" if found else None)
    question = "a number from the list, or any name" if found else "its name"
    while True:
        answer = _ask(f"{question} (see `gametape models`)", default)
        if re.fullmatch(r"\d{1,3}", answer) and found:
            if not 1 <= int(answer) <= len(found):
                _say(f"there is no {answer} in the list")
                continue
            chosen = found[int(answer) - 1]
            name = chosen.name.rstrip(":")
            answer = chosen.name if chosen.is_whole else chosen.name + _ask(f"which model of {name}", None)
        try:
            _check(answer, home, config)
        except BadInput as error:
            _say(printable_line(str(error)))
            continue
        return answer


def _check(model: str, home: Path, config: "UserConfig") -> bool:
    """Whether the model is on this machine; a name that cannot be one is refused before anything else is asked."""
    from gametape.agent.scripted_policies import SCRIPTED_POLICIES
    from gametape.engines.egress_policy import EgressPolicy
    from gametape.engines.model_aliases import expand_alias, provider_table
    from gametape.engines.model_names import check_local_name
    from gametape.engines.model_route import split_route

    table, local = provider_table(config), True
    if not model.strip() or not model.isprintable():
        raise BadInput("the model's name is empty or no line of text")
    for part in split_route(model):
        name = expand_alias(part, config, table).name
        if table.is_server_name(name):
            from gametape.engines.server.address import parse_address

            address = parse_address(name, table)
            local &= address.socket_path is not None or EgressPolicy().is_local(address.api_url.host)
        else:
            check_local_name(name, home, SCRIPTED_POLICIES)
    return local


def _ask_budget(is_local: bool, now: "BudgetConfig") -> tuple[float | None, int | None]:
    """Dollars or tokens. Without an answer, what the file says now stays."""
    example = "tokens, such as 2000000" if is_local else "dollars, such as $5, or tokens, such as 2000000"
    default = f"${now.cost:g}" if now.cost else str(now.tokens) if now.tokens else "no limit"
    while True:
        answer = _ask(f"What may one goal use at most? {example}, or no limit", default)
        if answer == default:
            return now.cost, now.tokens
        if answer.lower() in ("no limit", "none", "no"):
            return None, None
        dollars = re.fullmatch(r"\$\s*(\d{1,9}(?:\.\d{1,6})?)|(\d{1,9}(?:\.\d{1,6})?)\s*\$", answer)
        tokens = re.fullmatch(r"(\d{1,12})(?: ?tokens)?", answer.replace("_", "").replace(",", ""))
        if dollars and float(dollars[1] or dollars[2]) > 0:
            return float(dollars[1] or dollars[2]), None
        if tokens and 0 < int(tokens[1]) < 2**40:
            return None, int(tokens[1])
        _say(f"{printable_line(answer)!r} is neither; write $5 for dollars or 2000000 for tokens")


def _changed(document: dict[str, Any], answers: _Answers) -> bytes:
    import tomli_w

    limits = {"cost": answers.cost, "tokens": answers.tokens}
    replaced = limits if answers.budget_was_asked else {}
    budgets = {key: value for key, value in document.get("budgets", {}).items() if key not in replaced}
    budgets |= {key: value for key, value in limits.items() if value is not None}
    kept = {key: value for key, value in document.items() if key not in ("model", "budgets", "local_only")}
    head: dict[str, Any] = {"model": answers.model, **({"local_only": True} if answers.local_only else {})}
    return tomli_w.dumps({**head, **({"budgets": budgets} if budgets else {}), **kept}).encode()


def _tested(answers: _Answers, home: Path, config: "UserConfig") -> "tuple[ModelReport | None, GametapeError | None]":
    """The report on the model, or what kept it from being tested. A route is tested by its first model."""
    from gametape.cli.model_test import run_model_test
    from gametape.engines.model_route import split_route

    name = split_route(answers.model)[0]
    _say(f"testing {printable_line(name)} ...")
    try:
        return run_model_test(name, home, answers.local_only, _TEST_SECONDS, config), None
    except GametapeError as error:
        if isinstance(error, BadInput):
            raise
        return None, error


def _write(file: Path, content: bytes) -> None:
    from gametape.record.atomic import write_atomically
    from gametape.record.errors import write_error

    target = file.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(target.parent, error) from None
    write_atomically(target, content)


def _finish(
    file: Path, answers: _Answers, report: "ModelReport | None", problem: GametapeError | None, as_json: bool
) -> None:
    from gametape.cli.models import show_report

    usable = report.usable if report else None if problem is None else False
    answer = {
        "config": str(file),
        "model": answers.model,
        "max_cost": answers.cost,
        "max_tokens": answers.tokens,
        "local_only": answers.local_only,
        "usable": usable,
        "test": report.to_dict() if report else None,
        "problem": str(problem) if problem else None,
        "next": _NEXT,
    }

    def show(_answer: dict[str, Any]) -> None:
        if report:
            show_report(report)
        typer.echo(f"written: {file}")
        typer.echo(f"next:    {command_line(*_NEXT)}")

    emit(answer, as_json, show)
    if problem is not None:
        _say(f"gametape: {printable_line(str(problem))}")
    raise typer.Exit(problem.exit_code if problem else 1 if usable is False else 0)


def _ask(question: str, default: str | None) -> str:
    """An answer from standard input; the question goes to stderr. The end of the input is no answer."""
    hint = f" [{default}]" if default else ""
    while True:
        print(f"{question}{hint}: ", end="", file=sys.stderr, flush=True)
        line = sys.stdin.readline()
        if not line:
            print(file=sys.stderr)
            raise BadInput("nobody answers here: give --yes, or the answers as options (gametape init --help)")
        answer = line.strip()
        if answer or default is not None:
            return answer or default or ""


def _agrees(question: str, default: bool) -> bool:
    while True:
        answer = _ask(f"{question} (yes or no)", "yes" if default else "no").lower()
        if answer in ("y", "yes", "n", "no"):
            return answer.startswith("y")


def _say(line: str) -> None:
    print(line, file=sys.stderr)
