"""A real browser for tests, benchmarks and pictures: Debian's Chromium, driven over loopback by its own WebDriver.

It notes what a page must not do: what the content security policy had to stop, errors of scripts, what an injected text
ran, and every address that was asked for.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from tests.patience import HANG, wait_until

SCRIPTS = Path(__file__).parent / "scripts"
MISSING = "no Chromium with its driver here; type: apt-get install -y chromium chromium-driver"
ENTER = "\ue007"
TAB = "\ue004"
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_FLAGS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)
_INTERNAL = ("data", "about", "chrome")


def script(name: str) -> str:
    """One of the scripts that tests run in a page."""
    return (SCRIPTS / f"{name}.js").read_text()


def has_chromium() -> bool:
    return bool(shutil.which("chromium") and shutil.which("chromedriver"))


class Chromium:
    """One browser with one tab."""

    def __init__(self, driver: httpx.Client, session: str) -> None:
        self._driver, self._session = driver, session

    @classmethod
    @contextmanager
    def open(cls, width: int = 1280, height: int = 900) -> Iterator[Self]:
        with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as place:
            process = subprocess.Popen(
                ["chromedriver", "--port=0", f"--log-path={place}/driver.log"],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=os.environ | dict.fromkeys(("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), place),
            )
            try:
                assert process.stdout
                port = next(
                    found[1]
                    for line in process.stdout
                    if (found := re.search(r"started successfully on port (\d+)", line))
                )
                with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=HANG, trust_env=False) as driver:
                    session = driver.post("/session", json={"capabilities": {"alwaysMatch": _wanted(place)}}).json()
                    if "sessionId" not in session["value"]:
                        raise OSError(f"Chromium does not start: {session['value'].get('message')}")
                    browser = cls(driver, session["value"]["sessionId"])
                    browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=script("observer"))
                    browser.resize(width, height)
                    yield browser
                    browser._call("DELETE", "")
            finally:
                process.terminate()
                process.wait(HANG)

    def go(self, address: str) -> None:
        """Load a page, also where only what is behind the `#` is another."""
        self._call("POST", "/url", url="about:blank")
        self._call("POST", "/url", url=address)

    def run(self, body: str, *words: Any) -> Any:
        """What a function with this body returns."""
        return self._call("POST", "/execute/sync", script=body, args=list(words))

    def run_async(self, body: str, *words: Any) -> Any:
        """What the body gives to the function that is its last argument."""
        return self._call("POST", "/execute/async", script=body, args=list(words))

    def wait(self, expression: str, *words: Any) -> Any:
        """The value of an expression as soon as it is true; `arguments` holds the words."""
        found: list[Any] = []

        def holds() -> bool:
            found[:] = [self.run(f"return {expression}", *words)]
            return bool(found[0])

        wait_until(holds, f"{expression} {words}")
        return found[0]

    def text(self, css: str = "body") -> str:
        """What a reader sees of it."""
        return str(self.run("return document.querySelector(arguments[0])?.innerText ?? ''", css))

    def wait_for_text(self, text: str, css: str = "body") -> None:
        self.wait("document.querySelector(arguments[1])?.innerText.includes(arguments[0])", text, css)

    def click(self, css: str) -> None:
        element = self._call("POST", "/element", using="css selector", value=css)[_ELEMENT]
        self._call("POST", f"/element/{element}/click")

    def click_at(self, css: str, across: float) -> None:
        """Move the pointer to a place in an element, by its share of the width, and click."""
        box = self.run(script("place"), css, across)
        moves = [{"type": "pointerMove", "x": round(box[0]), "y": round(box[1])}]
        moves += [{"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp")]
        self._call("POST", "/actions", actions=[{"type": "pointer", "id": "mouse", "actions": moves}])

    def press(self, *keys: str) -> None:
        strokes = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._call("POST", "/actions", actions=[{"type": "key", "id": "keyboard", "actions": strokes}])

    def resize(self, width: int, height: int, scale: float = 1.0) -> None:
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )

    def colours(self, scheme: str) -> None:
        """`dark` or `light`."""
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, whole: bool = False) -> bytes:
        """What is on the screen, or the whole page, as PNG."""
        shot = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        return base64.b64decode(shot["data"])

    def devtools(self, command: str, **parameters: Any) -> Any:
        return self._call("POST", "/goog/cdp/execute", cmd=command, params=parameters)

    def observed(self) -> dict[str, list[str]]:
        """What the page did that it must not: `policy`, `errors` and `ran`."""
        found: dict[str, list[str]] = self.run("return window.observed")
        return found

    def complaints(self) -> list[str]:
        """What the browser's log got since it was asked last, which holds refusals of the policy too."""
        return [entry["message"] for entry in self._call("POST", "/se/log", type="browser")]

    def requested(self) -> set[str]:
        """The origins that pages asked for anything since this was asked last."""
        messages = [
            json.loads(entry["message"])["message"] for entry in self._call("POST", "/se/log", type="performance")
        ]
        sent = [message for message in messages if message["method"] == "Network.requestWillBeSent"]
        parts = [urlsplit(message["params"]["request"]["url"]) for message in sent]
        return {f"{part.scheme}://{part.netloc}" for part in parts if part.scheme not in _INTERNAL}

    def check_quiet(self, origin: str, known: tuple[str, ...] = ()) -> None:
        """Nothing that it must not do was seen since this was asked last, but for complaints with `known` words."""
        assert self.observed() == {"policy": [], "errors": [], "ran": []}
        assert [told for told in self.complaints() if not any(word in told for word in known)] == []
        assert self.requested() <= {origin if origin == "file://" else origin.rstrip("/")}

    def _call(self, method: str, path: str, **body: Any) -> Any:
        answer = self._driver.request(
            method, f"/session/{self._session}{path}", json=body if method == "POST" else None
        )
        value = answer.json()["value"]
        if answer.status_code != 200:
            raise AssertionError(f"{path}: {value['error']}: {value['message']}")
        return value


def _wanted(place: str) -> dict[str, Any]:
    flags = [*_FLAGS, f"--user-data-dir={place}/profile"]
    flags += ["--no-sandbox"] if os.geteuid() == 0 else []  # its own sandbox refuses root
    return {
        "browserName": "chrome",
        "goog:chromeOptions": {"args": flags, "binary": shutil.which("chromium")},
        "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        "timeouts": {"script": round(HANG * 1000), "pageLoad": round(HANG * 1000)},
    }


def require_chromium() -> None:
    """For scripts: end with the command that installs it."""
    if not has_chromium():
        print(MISSING, file=sys.stderr)
        raise SystemExit(3)
