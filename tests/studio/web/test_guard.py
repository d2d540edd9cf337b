"""Who is answered: this machine under its own name, forms of this server, and elsewhere whoever has the token."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from .site import OWN, browser, open_site

TOKEN = "a-long-token"


@pytest.fixture
def client(tmp_path: Path) -> TestClient:
    return browser(open_site(tmp_path))


@pytest.mark.parametrize("host", ["127.0.0.1:7337", "localhost:99", "[::1]:7337", "LOCALHOST", "127.0.0.1"])
def test_the_machine_answers_to_its_own_names(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "127.0.0.1@evil", "[::1].evil:1", "0"])
def test_other_names_are_refused_though_they_lead_here(client: TestClient, host: str) -> None:
    answer = client.get("/data/runs", headers={"host": host})
    assert (answer.status_code, "rows" in answer.text) == (421, False)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:8000"},
        {"origin": "https://127.0.0.1:7337"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"},
        {"sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"},
    ],
)
def test_requests_of_other_pages_are_refused(client: TestClient, headers: dict[str, str]) -> None:
    assert client.get("/data/runs", headers=headers).status_code == 403


def test_a_link_from_another_page_may_be_followed_but_nothing_changed(client: TestClient) -> None:
    navigation = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert client.get("/", headers=navigation).status_code == 200
    assert client.post("/desk/note", headers=navigation).status_code == 403
    assert client.post("/desk/note").status_code == 403, "a change without an origin"


@pytest.mark.parametrize("path", ["/", "/data/runs", "/static/main.js", "/nowhere", "/run?run=../etc"])
def test_every_answer_says_what_a_browser_may_do_with_it(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert (policy["default-src"], policy["script-src"], policy["style-src"]) == ("'none'", "'self'", "'self'")
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in headers


def test_elsewhere_nobody_is_answered_without_the_token(tmp_path: Path) -> None:
    client = browser(open_site(tmp_path), TOKEN)
    for path in ("/", "/data/runs", "/events?run=x", "/static/main.js", "/?token=guess"):
        assert client.get(path).status_code == 401
    assert client.post("/desk/note", headers={"origin": OWN}).status_code == 401
    assert client.get("/data/runs", headers={"authorization": "Bearer guess"}).status_code == 401
    assert client.get("/data/runs", headers={"cookie": "gametape_studio=guess; \x01"}).status_code == 401


def test_the_token_opens_a_session_and_leaves_the_address(tmp_path: Path) -> None:
    client = browser(open_site(tmp_path), TOKEN)
    entered = client.get(f"/%2Fevil.example?run=a&token={TOKEN}", follow_redirects=False)
    assert entered.headers["location"] == "/evil.example?run=a", "not //evil.example, which is another place"
    entered = client.get(f"/?token={TOKEN}", follow_redirects=False)
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    cookie = entered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert client.get("/data/runs").status_code == 200
    bearer = browser(open_site(tmp_path), TOKEN)
    assert bearer.get("/data/runs", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_with_the_token_it_may_stand_behind_something_that_encrypts(tmp_path: Path) -> None:
    client = browser(open_site(tmp_path), TOKEN)
    client.get(f"/?token={TOKEN}")
    assert client.post("/desk/note", headers={"origin": OWN.replace("http:", "https:")}).text.count(
        "not of this server"
    )


def test_a_session_of_the_token_is_not_lent_to_other_pages(tmp_path: Path) -> None:
    client = browser(open_site(tmp_path), TOKEN)
    client.get(f"/?token={TOKEN}")
    assert client.post("/desk/note", headers={"origin": "http://evil.example"}).status_code == 403
