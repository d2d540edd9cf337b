from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.engines.openai.address import parse_address
from gametape.engines.prices import Price


@pytest.mark.parametrize(
    ("url", "api", "root"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/"),
        ("https://host/api/v1", "https://host/api/v1", "https://host/api"),
        ("https://host/beta/openai", "https://host/beta/openai", "https://host/beta/openai"),
    ],
)
def test_where_things_are(url: str, api: str, root: str) -> None:
    address = parse_address(f"openai:org/model@v2@{url}")
    assert (address.model, str(address.api_url), str(address.root_url)) == ("org/model@v2", api, root)


def test_price_and_window_are_part_of_the_name() -> None:
    address = parse_address("openai:m@http://h/v1?input=1.5&output=3&window=8192")
    assert (address.price, address.window) == (Price(1.5, 3.0), 8192)
    assert str(address.api_url) == "http://h/v1"


def test_a_socket() -> None:
    address = parse_address("openai:m@unix:/run/model.sock")
    assert address.socket_path == Path("/run/model.sock")


@pytest.mark.parametrize(
    "name",
    [
        "openai:m",
        "openai:@http://h",
        "openai:m@",
        "openai:m@ftp://h",
        "openai:m@h:80",
        "openai:m@http://user:secret@h",
        "openai:m@http://h?input=1",
        "openai:m@http://h?input=x&output=1",
        "openai:m@http://h?window=-1",
        "openai:m@http://h?colour=red",
        "openai:m@http://[::1",
    ],
)
def test_what_is_no_address(name: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_address(name)
    assert "secret" not in str(caught.value)
