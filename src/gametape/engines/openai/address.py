"""Parses `openai:MODEL@URL`: the model, the address, the price."""

from dataclasses import dataclass
from pathlib import Path

import httpx

from gametape.core.errors import BadInput
from gametape.engines.prices import Price, parse_price

_HOW = "write openai:MODEL@URL, such as openai:some-model@http://127.0.0.1:8000/v1"


@dataclass(frozen=True)
class ServerAddress:
    """A model of a server. `/chat/completions` is below `api_url`, `/tokenize` below `root_url`.

    `socket_path` is the Unix socket to connect to instead of the host; `price` and `window` are those in the name.
    """

    model: str
    api_url: httpx.URL
    root_url: httpx.URL
    socket_path: Path | None = None
    price: Price | None = None
    window: int | None = None


def parse_address(name: str) -> ServerAddress:
    """`openai:MODEL@URL`, where URL is `http(s)://HOST[:PORT][/PATH]` or `unix:/PATH/TO/SOCKET`, and may end in
    `?input=...&output=...` (dollars per million tokens), `&cached=...` and `&window=...` (tokens).

    Without a path, `/v1` is meant.
    """
    model, at, target = name.removeprefix("openai:").rpartition("@")
    if not at or not model or not target:
        raise BadInput(f"{name}: {_HOW}")
    if "://" in model:
        raise BadInput(f"a URL with a user in it is not used; {_HOW}")
    try:
        url = httpx.URL(target)
    except httpx.InvalidURL as error:
        raise BadInput(f"{name}: {error}; {_HOW}") from error
    options = dict(url.params)
    window = _window(options.pop("window"), name) if "window" in options else None
    price = parse_price(options, name) if options else None
    bare = url.copy_with(query=None, fragment=None)
    if url.scheme == "unix":
        local = httpx.URL("http://localhost")
        return ServerAddress(model, local.copy_with(path="/v1"), local, Path(url.path), price, window)
    if url.scheme not in {"http", "https"} or not url.host:
        raise BadInput(f"{name}: expected a URL that begins with http://, https:// or unix:/; {_HOW}")
    if not 0 < (url.port or 80) < 1 << 16:
        raise BadInput(f"{name}: there is no port {url.port}; {_HOW}")
    path = bare.path.rstrip("/")
    api = bare.copy_with(path=path or "/v1")
    return ServerAddress(model, api, bare.copy_with(path=path.removesuffix("/v1") or "/"), None, price, window)


def _window(text: str, name: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise BadInput(f"{name}: expected a number of tokens as window, not {text!r}")
    return int(text)
