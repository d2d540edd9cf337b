"""A studio over directories of a test, asked as a browser of this machine would ask."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import uvicorn
from starlette.testclient import TestClient

from gametape.studio.web.app import create_app
from gametape.studio.web.catalogue import RunCatalogue
from gametape.studio.web.server import bind_studio
from gametape.studio.web.site import StudioSite

from ..runs import HOSTILE

OWN = "http://127.0.0.1:7337"


def open_site(runs: Path, home: Path | None = None) -> StudioSite:
    return StudioSite(RunCatalogue(runs, home or runs / "no-home"))


def browser(site: StudioSite, token: str | None = None) -> TestClient:
    return TestClient(create_app(site, token), base_url=OWN)


def update_line(step: int, **values: Any) -> str:
    return json.dumps({"kind": "update", "step": step, "reward": step / 10, "time": {"learn": 0.5}} | values) + "\n"


def step_of(number: int, **values: Any) -> dict[str, Any]:
    return {"step_id": number, "source": "agent", "message": f"said {number}"} | values


def write_tape(path: Path, steps: list[dict[str, Any]], **fields: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    agent = {"name": "someone", "version": "1"}
    document = {"schema_version": "ATIF-v1.7", "trajectory_id": path.stem, "agent": agent, "steps": steps} | fields
    path.write_text(json.dumps(document))
    return path


class Markup(HTMLParser):
    """The tags and attributes of a page, and the text as a reader sees it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def check_harmless(page: str) -> Markup:
    """Nothing of `HOSTILE` became markup, no handler and no script stands in the page, nothing is fetched elsewhere."""
    markup = Markup(page)
    assert "\x1b" not in page
    assert HOSTILE[:8] not in page
    for tag, attributes in markup.tags:
        assert tag not in ("img", "iframe", "object", "embed", "base")
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for name in ("src", "href", "action"):
            assert not (attributes.get(name) or "").startswith(("http", "//", "javascript")), attributes
        if tag == "script":
            assert attributes.get("src") == "/static/main.js"
    return markup


@contextmanager
def served(site: StudioSite) -> Iterator[str]:
    """A server as it is started, in a thread. Gives its address."""
    bound = bind_studio("127.0.0.1", 0)
    config = uvicorn.Config(create_app(site, bound.token), log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: server.run(sockets=[bound.socket]))
    thread.start()
    try:
        yield bound.address
    finally:
        server.should_exit = True
        thread.join()
