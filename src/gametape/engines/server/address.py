"""Parses the name of a server's model: `PROVIDER:MODEL`, `MODEL@URL` or `PROVIDER:MODEL@URL`."""

import re
from dataclasses import dataclass
from pathlib import Path

import httpx

from gametape.core.errors import BadInput
from gametape.engines.prices import parse_price
from gametape.engines.providers import (
    PROVIDERS,
    REASONING_EFFORTS,
    URL_IN_NAME,
    ModelSettings,
    Provider,
    ProviderTable,
    ReasoningEffort,
)

_HOW = (
    "write PROVIDER:MODEL, MODEL@URL or PROVIDER:MODEL@URL, such as openai:some-model or "
    "some-model@http://127.0.0.1:8000/v1"
)
_LOOKS_LIKE_HOST = re.compile(
    r"(localhost|\d+(\.\d+){3}|\[[^]]*\]?|[\w-]+(\.[\w-]+)*\.[a-z]{2,})(:\d+)?(/.*)?|[^/]*:\d+(/.*)?", re.IGNORECASE
)
_API_PATHS = {"openai": "/v1", "anthropic": "/v1", "ollama": "/api"}
_NO_SETTINGS = ModelSettings()
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class ServerAddress:
    """A model of a server. The API is below `api_url`; what servers have beside it is below `root_url`.

    `socket_path` is the Unix socket to connect to instead of the host. `own` says whether this is the provider's own
    server, which may be given its key. `settings` are those of the name and of the user, the name first.
    """

    provider: Provider
    model: str
    api_url: httpx.URL
    root_url: httpx.URL
    own: bool
    socket_path: Path | None = None
    settings: ModelSettings = _NO_SETTINGS

    @property
    def server(self) -> str:
        """The server's name in messages: scheme, host and port, never a key."""
        return str(self.socket_path or self.root_url.copy_with(path="/", userinfo=b"")).rstrip("/")

    @property
    def name(self) -> str:
        """The model's full name."""
        return f"{self.provider.name}:{self.model}" + ("" if self.own else f"@{self.server}")


def parse_address(name: str, table: ProviderTable | None = None) -> ServerAddress:
    """The address that a name stands for. URL is `http(s)://HOST[:PORT][/PATH]` or `unix:/PATH/TO/SOCKET`; without a
    path, the protocol's usual one is meant. A name may end in `?input=...&output=...` (dollars per million tokens),
    `&cached=...`, `&window=...` (tokens) and `&reasoning=...` (tokens, or low, medium, high).
    """
    table = table or ProviderTable()
    kind, colon, rest = name.partition(":")
    provider = table.find(kind) if colon else None
    if provider is None:
        provider, rest = PROVIDERS["openai"], name
        if not URL_IN_NAME.search(name):
            raise BadInput(f"{name}: {_HOW}")
    found = URL_IN_NAME.search(rest)
    if found is None:
        return _own_address(name, provider, rest, table)
    return _other_address(name, provider, rest[: found.start()], rest[found.end() :], table)


def _own_address(name: str, provider: Provider, rest: str, table: ProviderTable) -> ServerAddress:
    model, _, query = rest.partition("?")
    _, at, after = model.rpartition("@")
    if not model or (at and (not after or _LOOKS_LIKE_HOST.fullmatch(after))):
        raise BadInput(f"{name}: {_HOW}")
    api, root, socket = _parse_url(provider.url, provider, provider.url)
    given = _parse_options(dict(httpx.QueryParams(query)), name)
    settings = _joined(given, table.settings.get(f"{provider.name}:{model}"))
    return ServerAddress(provider, model, api, root, True, socket, settings)


def _other_address(name: str, provider: Provider, model: str, target: str, table: ProviderTable) -> ServerAddress:
    if not model or not target:
        raise BadInput(f"{name}: {_HOW}")
    place, _, query = target.partition("?")
    if "@" in place.removeprefix("unix:").partition("//")[2].partition("/")[0]:
        raise BadInput(f"a URL with a user in it is not used; {_HOW}")
    api, root, socket = _parse_url(place, provider, name)
    own = socket is None and _origin(api) == _origin(httpx.URL(provider.url))
    given = _parse_options(dict(httpx.QueryParams(query)), name)
    exact = table.settings.get(f"{provider.name}:{model}@{place}")
    if exact is None and provider.name == "openai":
        exact = table.settings.get(f"{model}@{place}")
    settings = _joined(given, table.settings.get(f"{provider.name}:{model}") if own else exact)
    return ServerAddress(provider, model, api, root, own, socket, settings)


def _parse_url(text: str, provider: Provider, where: str) -> tuple[httpx.URL, httpx.URL, Path | None]:
    """The URL of the API, that of the server's root, and the Unix socket if it is at one."""
    try:
        url = httpx.URL(text).copy_with(query=None, fragment=None)
    except httpx.InvalidURL as error:
        raise BadInput(f"{where}: {error}; {_HOW}") from error
    usual = _API_PATHS[provider.protocol]
    if url.scheme == "unix":
        local = httpx.URL("http://localhost")
        return local.copy_with(path=usual), local, Path(url.path)
    if url.scheme not in {"http", "https"} or not url.host:
        raise BadInput(f"{where}: expected a URL that begins with http://, https:// or unix:/; {_HOW}")
    if not 0 < (url.port or 80) < 1 << 16:
        raise BadInput(f"{where}: there is no port {url.port}; {_HOW}")
    path = url.path.rstrip("/")
    root = path.removesuffix("/v1").removesuffix("/api") if provider.protocol == "ollama" else path.removesuffix("/v1")
    api = f"{root}/api" if provider.protocol == "ollama" else path or usual
    return url.copy_with(path=api), url.copy_with(path=root or "/"), None


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or _DEFAULT_PORTS.get(url.scheme)


def _joined(given: ModelSettings, usual: ModelSettings | None) -> ModelSettings:
    if usual is None:
        return given
    return ModelSettings(
        window=given.window or usual.window,
        price=given.price or usual.price,
        key_variable=usual.key_variable,
        reasoning=given.reasoning if given.reasoning is not None else usual.reasoning,
    )


def _parse_options(options: dict[str, str], name: str) -> ModelSettings:
    window = _tokens(options.pop("window"), name, "window") if "window" in options else None
    reasoning = parse_reasoning(options.pop("reasoning"), name) if "reasoning" in options else None
    return ModelSettings(window, parse_price(options, name) if options else None, None, reasoning)


def parse_reasoning(value: str | int, where: str) -> int | ReasoningEffort:
    """A number of tokens, or an effort."""
    for effort in REASONING_EFFORTS:
        if value == effort:
            return effort
    if not re.fullmatch(r"\d{1,9}", str(value), re.ASCII):
        raise BadInput(f"{where}: expected reasoning as a number of tokens, low, medium or high, not {value!r}")
    return int(value)


def _tokens(text: str, name: str, what: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise BadInput(f"{name}: expected a number of tokens as {what}, not {text!r}")
    return int(text)
