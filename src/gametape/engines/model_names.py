"""The model that a name stands for.

smollm2              the embedded model, fetched once
PATH                 a directory of weights in the form that transformers writes, or of a training run: its last ones
OWNER/NAME           the same from a model hub, where there is one
PROVIDER:MODEL       a model of a provider: openai, anthropic, openrouter, ollama, lmstudio, vllm, or one of the user's
MODEL@URL            a model of any server that speaks OpenAI's protocol
PROVIDER:MODEL@URL   a model of a server at this URL that speaks the provider's protocol
scripted:NAME        a written policy that knows the task (expert, clumsy, cheat)
scripted:FILE        a written policy from a file of JSON lines
LOCAL,FRONTIER       two of these: the first one where its odds are worth the cost, the second after a failure
"""

import contextlib
import importlib.util
import json
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from gametape.core.errors import BadInput, MissingDependency
from gametape.core.user_config import UserConfig
from gametape.engines.conversation import Model
from gametape.engines.egress_policy import EgressDenied, EgressPolicy
from gametape.engines.model_aliases import expand_alias, provider_table
from gametape.engines.model_route import open_route, split_route
from gametape.engines.model_temperature import with_temperature
from gametape.engines.providers import PROVIDERS, Provider, ProviderTable
from gametape.engines.retry import RetryingModel, RetryPolicy
from gametape.engines.scripted import ScriptedTurn, read_script, scripted_model
from gametape.record.config_file import read_user_config
from gametape.record.installation import command_line, install_extra

ScriptFactory = Callable[[], Sequence[ScriptedTurn]]
EMBEDDED_MODEL = "smollm2"
_TASK_SCRIPTS = ("expert", "clumsy", "cheat", "noisy")
"""Scripts that are written for a task or a world: other verbs have none to write them for."""
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_CHECKPOINT = re.compile(r"\d{8}")
SHARDS = "shards"
"""The directory of a checkpoint with the learner's tensors; in runs of earlier versions they are files beside it."""
FILE_SIZES = "files.json"
"""The sizes of all other files of a checkpoint; runs of earlier versions have none."""
_EARLIER_FILES = ("state.json", "optimizer.safetensors")
MODEL = "model"
_WEIGHTS_FILE = "model.safetensors"


def resolve_model(
    name: str,
    home: Path,
    egress: EgressPolicy | None = None,
    scripts: Mapping[str, ScriptFactory] | None = None,
    config: UserConfig | None = None,
) -> Model:
    """The model of this name, ready for conversations. Weights are loaded here if the name means weights.

    `config` has the user's aliases and providers; where it is not given, the user's file is read.
    """
    config, egress = read_user_config() if config is None else config, egress or EgressPolicy()
    if config.local_only:
        egress = replace(egress, local_only=True)
    parts = split_route(name)
    if len(parts) == 2:
        return open_route(parts, home, egress, lambda part: resolve_model(part, home, egress, scripts, config))
    table = provider_table(config)
    expanded = expand_alias(name, config, table)
    model = _open(expanded.name, home, egress, scripts or {}, table)
    return model if expanded.temperature is None else with_temperature(model, expanded.temperature)


def check_model_name(name: str, home: Path, egress: EgressPolicy) -> None:
    """Raise what `resolve_model` would raise for this name; weights that are there are not loaded for it."""
    config = read_user_config()
    table = provider_table(config)
    parts = split_route(name)
    for part in parts:
        full = expand_alias(part, config, table).name
        if full.startswith("scripted:") or table.is_server_name(full):
            try:
                resolve_model(part, home, egress, config=config)
            except EgressDenied:
                if part == parts[0]:
                    raise
        else:
            _local_weights(full, home)


def check_local_name(name: str, home: Path, scripts: Collection[str]) -> None:
    """Raise `BadInput` for a name that means neither a script nor weights. `scripts` are those that need no file."""
    kind, _, rest = name.partition(":")
    if kind == "scripted":
        if rest not in scripts:
            _scripted(name, rest, {})
        return
    with contextlib.suppress(MissingDependency):  # it can be fetched
        _local_weights(name, home)


def _open(
    name: str, home: Path, egress: EgressPolicy, scripts: Mapping[str, ScriptFactory], table: ProviderTable
) -> Model:
    kind, _, rest = name.partition(":")
    if kind == "scripted":
        return _scripted(name, rest, scripts)
    if table.is_server_name(name):
        return _server(name, home, egress, table)
    return _weights(name, home, egress)


def _server(name: str, home: Path, egress: EgressPolicy, table: ProviderTable) -> Model:
    from gametape.engines.anthropic import AnthropicModel, open_anthropic_model  # noqa: PLC0415 - httpx loads slowly
    from gametape.engines.ollama import OllamaModel, open_ollama_model  # noqa: PLC0415
    from gametape.engines.openai import ServerModel, open_server_model  # noqa: PLC0415
    from gametape.engines.server.address import parse_address  # noqa: PLC0415

    model: AnthropicModel | OllamaModel | ServerModel
    match parse_address(name, table).provider.protocol:
        case "anthropic":
            model = open_anthropic_model(name, egress, home, table=table)
        case "ollama":
            model = open_ollama_model(name, egress, home, table=table)
        case "openai":
            model = open_server_model(name, egress, home, table=table)
    return RetryingModel(model, RetryPolicy(), model.price)


def _scripted(name: str, rest: str, scripts: Mapping[str, ScriptFactory]) -> Model:
    if rest in scripts:
        return scripted_model(name, scripts[rest]())
    path = Path(rest)
    if not rest or not path.is_file():
        known = f"{', '.join(scripts)} or " if scripts else ""
        why = f" ({rest} is a script for tasks and worlds, of `solve` and `eval`)" if rest in _TASK_SCRIPTS else ""
        near = get_close_matches(rest, scripts, n=1)
        meant = f" did you mean scripted:{near[0]}?" if near else ""
        raise BadInput(f"{name}: no such script here{why};{meant} give {known}a file of JSON lines")
    return scripted_model(name, read_script(path))


def _local_weights(name: str, home: Path) -> Path | None:
    """The directory that a name of weights means; None for one that a hub may have."""
    if name == EMBEDDED_MODEL:
        directory = home / "models" / EMBEDDED_MODEL
        if not directory.is_dir():
            fetch = command_line("models", "fetch", EMBEDDED_MODEL)
            raise MissingDependency(f"smollm2 has not been fetched yet; type: {fetch}")
        return directory
    if Path(name).is_dir():
        return Path(name)
    if name.startswith((".", "~")) or (_HUB_ID.fullmatch(name) and Path(name).parent.is_dir()):
        raise BadInput(f"{name}: no such directory of weights or of a training run")
    if not _HUB_ID.fullmatch(name):
        kind, colon, rest = name.partition(":")
        near = get_close_matches(kind, PROVIDERS if colon else [EMBEDDED_MODEL], n=1)
        meant = f" did you mean {near[0]}{colon}{rest}?" if near else ""
        raise BadInput(
            f"{name}: no such model;{meant} give smollm2, a directory, PROVIDER:MODEL ({', '.join(PROVIDERS)}), "
            "MODEL@URL or scripted:FILE"
        )
    return None


def _weights(name: str, home: Path, egress: EgressPolicy) -> Model:
    directory = find_weights(_local_weights(name, home) or _from_hub(name, egress))
    if not (directory / "config.json").is_file():  # known before torch is loaded, which takes seconds
        raise BadInput(f"{name}: there are no weights of a model in it (no config.json)")
    try:
        from gametape.engines.torch.build import open_torch_model  # noqa: PLC0415 - needs torch
    except ImportError as error:
        raise MissingDependency(f"{name} needs torch and transformers: {install_extra('train')} ({error})") from error
    return open_torch_model(directory, name)


def find_weights(directory: Path) -> Path:
    """The directory of weights that a path means: itself, that of a checkpoint, or of the last complete checkpoint of a
    training run."""
    if not (directory / "checkpoints").is_dir():
        return checkpoint_model(directory) if (directory / "state.json").exists() else directory
    saved = list_checkpoints(directory / "checkpoints")
    if not saved:
        raise BadInput(f"{directory}: the run there has no checkpoint yet")
    return checkpoint_model(saved[-1])


def checkpoint_model(checkpoint: Path) -> Path:
    """The directory in a checkpoint that other programs can load. In runs of earlier versions it is the checkpoint."""
    model = checkpoint / MODEL
    return model if model.is_dir() else checkpoint


def list_checkpoints(directory: Path) -> list[Path]:
    """The complete checkpoints, oldest first."""
    if not directory.is_dir():
        return []
    named = sorted(path for path in directory.iterdir() if _CHECKPOINT.fullmatch(path.name))
    return [path for path in named if _is_complete(path)]


def _is_complete(checkpoint: Path) -> bool:
    """Whether every file is there and none was cut short."""
    try:
        sizes: dict[str, int] = json.loads((checkpoint / FILE_SIZES).read_text(encoding="utf-8"))
        return all((checkpoint / name).stat().st_size == size for name, size in sizes.items())
    except FileNotFoundError:
        files = [checkpoint / name for name in _EARLIER_FILES]
        whole = [*files, checkpoint_model(checkpoint) / _WEIGHTS_FILE]
        return not (checkpoint / SHARDS).exists() and all(path.exists() for path in whole)
    except (OSError, ValueError):
        return False


def _from_hub(name: str, egress: EgressPolicy) -> Path:
    """A local-only policy allows only what an earlier download has left here."""
    try:
        from huggingface_hub import snapshot_download  # noqa: PLC0415 - only for models of a hub

        return Path(snapshot_download(name, local_files_only=egress.local_only))
    except ImportError as error:
        raise MissingDependency(f"{name} is on a hub: {install_extra('train')} ({error})") from error
    except Exception as error:  # whatever the hub's client raises, the model is not to be had
        raise MissingDependency(
            f"{name}: not a directory here, and the hub did not give it: {type(error).__name__}"
        ) from error


def list_model_names(home: Path, table: ProviderTable | None = None) -> list[dict[str, Any]]:
    """Every kind of name, and whether what it needs is here: torch for weights, its key for a hosted provider. None
    for a server on this machine, which may run or not."""
    has_torch = importlib.util.find_spec("torch") is not None
    rows = [
        (EMBEDDED_MODEL, "SmolLM2-135M-Instruct on this machine", (home / "models" / EMBEDDED_MODEL).is_dir(), True),
        ("DIRECTORY", "weights as transformers saves them, or a training run", has_torch, True),
        ("OWNER/NAME", "weights from a model hub, where one can be reached", has_torch, True),
        *(_provider_row(provider) for provider in [*PROVIDERS.values(), *(table or ProviderTable()).added.values()]),
        ("MODEL@URL", "a server that speaks OpenAI's protocol; trainable if it takes token ids", True, None),
        ("PROVIDER:MODEL@URL", "the same with another provider's protocol", True, None),
        ("scripted:FILE", "a policy written down as JSON lines", True, True),
        ("scripted:expert", "writes the task's own solution", True, True),
        ("scripted:clumsy", "the same with five kinds of mistakes", True, True),
        ("scripted:cheat", "attacks the tests instead of solving", True, True),
        ("LOCAL,FRONTIER", "two of these: the second after a failure of the first", True, None),
    ]
    return [dict(zip(("name", "what", "available", "trainable"), row, strict=True)) for row in rows]


def _provider_row(provider: Provider) -> tuple[str, str, bool | None, bool | None]:
    place = provider.url.partition("://")[2].partition("/")[0]
    key = f", key in ${provider.key_variable}" if provider.key_variable and provider.hosted else ""
    ready = bool(os.environ.get(provider.key_variable or "", "").strip()) if provider.hosted else None
    return f"{provider.name}:MODEL", f"a model at {place}{key}", ready, None if provider.takes_tokens else False
