"""The models and providers of a person's configuration, and what a workspace's may name of them."""

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from gametape.core.errors import BadInput
from gametape.core.user_config import ModelAlias, ProviderConfig, UserConfig
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.model_route import split_route
from gametape.engines.providers import HOSTED_WINDOW, LOCAL_WINDOW, SERVER_KEY_VARIABLE, Provider, ProviderTable
from gametape.record.config_file import read_user_config

_LOCAL = EgressPolicy()


@dataclass(frozen=True)
class ExpandedName:
    """What an alias stands for: a model's full name, and its usual temperature."""

    name: str
    temperature: float | None = None


def provider_table(config: UserConfig) -> ProviderTable:
    """The built-in providers and the user's own."""
    return ProviderTable(added={name: _provider(name, given) for name, given in config.providers.items()})


def _provider(name: str, given: ProviderConfig) -> Provider:
    hosted = given.key_variable is not None
    return Provider(
        name,
        given.protocol,
        given.url,
        given.key_variable,
        hosted=hosted,
        takes_tokens=given.protocol == "openai" and not hosted,
        window=given.window or (HOSTED_WINDOW if hosted else LOCAL_WINDOW),
    )


def expand_alias(name: str, config: UserConfig, table: ProviderTable) -> ExpandedName:
    """The full name that an alias stands for; any other name stands for itself."""
    alias = config.models.get(name)
    if alias is None:
        return ExpandedName(name)
    where = f"models.{name}"
    if alias.model in config.models or len(split_route(alias.model)) > 1:
        raise BadInput(f"{where}.model: {alias.model!r} is no single model's name")
    options = _server_options(alias)
    if options and not table.is_server_name(alias.model):
        raise BadInput(f"{where}: {', '.join(sorted(options))} can only be set for a server's model")
    return ExpandedName(with_options(alias.model, options), alias.temperature)


def _server_options(alias: ModelAlias) -> dict[str, str]:
    options = {"window": alias.window, "reasoning": alias.reasoning}
    if alias.price is not None:
        options |= alias.price.model_dump()
    return {key: str(value) for key, value in options.items() if value is not None}


def with_options(name: str, options: dict[str, str]) -> str:
    """A server's model with options at the end; those that the name has already stay."""
    if not options:
        return name
    bare, _, query = name.partition("?")
    return f"{bare}?{urlencode(options | dict(parse_qsl(query)))}"


def check_workspace_model(name: str, config: UserConfig, where: str, root: Path) -> str:
    """The model that a workspace's file chooses, with the scripts below `root` by absolute paths; `BadInput` unless a
    workspace may choose it.

    A stranger may have written the workspace's file. It may choose what stays on this machine, and beyond that only
    what the user's own file names: the default model, an alias, a model of a provider that is defined there. A comma
    always separates two models here, whatever files lie in the workspace.
    """
    parts = [part.strip() for part in name.split(",")]
    for part in parts:
        reason = _why_not(part, config)
        if reason is not None:
            raise BadInput(f"{where}: model: a workspace cannot choose {part!r}: {reason}")
    chosen = [_script_below(root, part) for part in parts]
    if split_route(",".join(chosen)) != chosen:
        raise BadInput(f"{where}: model: {name!r} can be read in two ways, as a path and as a route; give --model")
    return ",".join(chosen)


def _script_below(root: Path, name: str) -> str:
    kind, _, rest = name.partition(":")
    return f"scripted:{root / rest}" if kind == "scripted" and (root / rest).is_file() else name


def _why_not(name: str, config: UserConfig) -> str | None:
    table = provider_table(config)
    named = {*config.models, *(alias.model for alias in config.models.values()), *split_route(config.model or "")}
    if name in named or name == "smollm2" or name.startswith("scripted:"):
        return None
    if "?" in name:
        return "options of a model, such as its price, are set in your own file"
    if not table.is_server_name(name):
        return "weights are named on the command line or in your own file"
    return _why_not_server(name, config, table)


def _why_not_server(name: str, config: UserConfig, table: ProviderTable) -> str | None:
    from gametape.engines.server.address import parse_address  # noqa: PLC0415 - httpx is slow to import

    address = parse_address(name, table)
    how = "name it in your own file, or give --model"
    if address.own and address.provider.name in config.providers:
        return None
    if address.socket_path is not None or not _LOCAL.is_local(address.api_url.host):
        return f"it is not on this machine; {how}"
    if not address.own and os.environ.get(SERVER_KEY_VARIABLE, "").strip():
        return f"${SERVER_KEY_VARIABLE} would be sent there; {how}"
    return None


def absolute_model_name(name: str, config: UserConfig | None = None) -> str:
    """A model's name with absolute paths, so that it means the same from any directory. An alias stays one, whatever
    lies in the current directory."""
    taken = {"smollm2", *(read_user_config() if config is None else config).models}
    return ",".join(part if part in taken else _absolute(part) for part in split_route(name))


def _absolute(name: str) -> str:
    kind, separator, rest = name.partition(":")
    if kind == "scripted" and separator and Path(rest).is_file():
        return f"{kind}:{Path(rest).absolute()}"
    return str(Path(name).absolute()) if Path(name).is_dir() else name
