"""Decisions on the desk: only by this server's own forms, and only about what was shown."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from starlette.testclient import TestClient

from gametape.desk.database import drafts
from gametape.desk.desk import open_desk
from gametape.desk.vault.review import review
from gametape.desk.vault.vault import NoteWriter, Vault
from gametape.studio.web import desk_page

from ..runs import HOSTILE
from .site import OWN, browser, check_harmless, open_site, write_tape

FORM = re.compile(r"<form[^>]*action=\"(/desk/\w+)\">(.*?)</form>", re.DOTALL)
FIELD = re.compile(r'name="(\w+)" value="([^"]*)"')


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def client(tmp_path: Path, home: Path) -> TestClient:
    client = browser(open_site(tmp_path / "runs", home))
    client.headers["origin"] = OWN
    return client


def draft_in(home: Path, key: str = "k") -> str:
    with open_desk(home) as desk:
        return desk.outbox.draft(key, "thread-1", "ada@example.org", f"subject {HOSTILE}", f"body {HOSTILE}")


def state_of(home: Path, draft: str) -> str:
    with open_desk(home) as desk:
        return desk.outbox.get(draft).state


def forms(client: TestClient) -> dict[str, tuple[str, dict[str, str]]]:
    """The buttons of the page, by their decision."""
    page = client.get("/desk").text
    check_harmless(page)
    found = [(action, dict(FIELD.findall(body))) for action, body in FORM.findall(page)]
    return {fields["decision"]: (action, fields) for action, fields in found}


def note_in(home: Path, text: str, turn: int = 1) -> Vault:
    vault = Vault.init(home / "vault")
    vault.write("people/ada", text, NoteWriter("t", turn, f"t/{turn}"))
    return vault


def test_looking_makes_no_home(client: TestClient, home: Path) -> None:
    assert client.get("/desk").status_code == 200
    assert not home.exists()


@pytest.mark.parametrize(("decision", "state"), [("approve", "sent"), ("reject", "rejected")])
def test_a_button_decides_a_draft(client: TestClient, home: Path, decision: str, state: str) -> None:
    draft = draft_in(home)
    action, fields = forms(client)[decision]
    answer = client.post(action, data=fields, follow_redirects=False)
    assert (answer.status_code, state_of(home, draft)) == (303, state)
    assert draft in check_harmless(client.get(answer.headers["location"]).text).text
    again = client.post(action, data=fields)
    assert (again.status_code, state_of(home, draft)) == (200, state)


def test_a_form_of_somebody_else_decides_nothing(client: TestClient, home: Path) -> None:
    draft, _ = draft_in(home), note_in(home, "likes tables")
    shown = forms(client)
    assert shown.keys() == {"approve", "reject", "accept", "revert"}
    for action, fields in shown.values():
        without = {key: value for key, value in fields.items() if key != "secret"}
        for told in (without, without | {"secret": ""}, without | {"secret": "guess"}, without | {"secret": "\u00e9"}):
            assert client.post(action, data=told).status_code == 403
    assert state_of(home, draft) == "draft"
    assert len(review(Vault.open(home / "vault"))) == 1


def test_a_form_from_another_page_decides_nothing(client: TestClient, home: Path) -> None:
    draft = draft_in(home)
    action, fields = forms(client)["approve"]
    for headers in ({"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        assert client.post(action, data=fields, headers=headers).status_code == 403
    assert client.get(action, params=fields).status_code == 405
    assert state_of(home, draft) == "draft"


def test_a_note_is_accepted_or_taken_back(client: TestClient, home: Path) -> None:
    vault = note_in(home, f"likes {HOSTILE}")
    action, fields = forms(client)["accept"]
    client.post(action, data=fields)
    assert review(vault) == []
    note_in(home, "likes chairs", 2)
    action, fields = forms(client)["revert"]
    client.post(action, data=fields)
    assert review(vault) == []
    assert "chairs" not in (vault.read("people/ada") or "")


@pytest.mark.parametrize("decision", ["accept", "revert"])
def test_a_note_that_was_changed_since_it_was_shown_is_left_alone(
    client: TestClient, home: Path, decision: str
) -> None:
    vault = note_in(home, "likes tables")
    action, fields = forms(client)[decision]
    note_in(home, "likes tables and something nobody has seen", 2)
    answer = client.post(action, data=fields)
    assert "was changed since you saw it" in check_harmless(answer.text).text
    assert len(review(vault)) == 1
    assert "nobody has seen" in (vault.read("people/ada") or "")


@pytest.mark.parametrize("decision", ["accept", "revert"])
def test_a_note_that_changes_between_the_look_and_the_decision_is_left_alone(
    client: TestClient, home: Path, decision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is done before the vault is locked for the decision, the agent may write after it."""
    vault = note_in(home, "likes tables")
    action, fields = forms(client)[decision]
    decide = {"accept": desk_page.accept, "revert": desk_page.revert}[decision]

    def write_first(*words: Any) -> Any:
        note_in(home, "likes tables and something nobody has seen", 2)
        return decide(*words)

    monkeypatch.setattr(desk_page, decision, write_first)
    answer = client.post(action, data=fields)
    assert "was changed since you saw it" in check_harmless(answer.text).text
    assert len(review(vault)) == 1
    assert "nobody has seen" in (vault.read("people/ada") or "")


def test_goals_and_threads_lead_to_their_tapes(client: TestClient, home: Path) -> None:
    goal = home / "goals" / "goal-20261119-00aa11"
    write_tape(goal / "trajectory.json", [{"step_id": 1, "source": "user", "message": HOSTILE}])
    (goal / "goal.json").write_text('{"instruction": "mend <b>it</b>", "model": "scripted:x"}')
    page = check_harmless(client.get("/desk").text)
    assert "mend <b>it</b>" in page.text
    (href,) = [a["href"] or "" for tag, a in page.tags if tag == "a" and "goal-" in (a.get("href") or "")]
    check_harmless(client.get(href).text)
    assert client.get("/data/tape", params={"run": "home:goals/goal-20261119-00aa11"}).json()["steps"] == 1


def test_a_draft_whose_sender_was_cut_off_is_sent_again_or_left(client: TestClient, home: Path) -> None:
    draft = draft_in(home)
    with open_desk(home) as desk, desk.database.begin() as connection:
        connection.execute(sa.update(drafts).values(state="sending"))
    assert forms(client).keys() == {"again", "reject"}
    action, fields = forms(client)["again"]
    assert client.post(action, data=fields).status_code == 200
    assert state_of(home, draft) == "sent"


def test_one_that_could_not_be_sent_is_sent_now_and_not_rejected(client: TestClient, home: Path) -> None:
    draft = draft_in(home)
    with open_desk(home) as desk, desk.database.begin() as connection:
        connection.execute(sa.update(drafts).values(state="approved"))
    assert forms(client).keys() == {"approve"}
    action, fields = forms(client)["approve"]
    assert client.post(action, data=fields).status_code == 200
    assert state_of(home, draft) == "sent"


def test_the_last_conversations_are_on_the_desk(client: TestClient, home: Path) -> None:
    for name in ("thread-1", "thread-2"):
        (home / "threads" / name).mkdir(parents=True)
        (home / "threads" / name / "thread.json").write_text(json.dumps({"title": HOSTILE}))
    write_tape(home / "threads" / "thread-1" / "trajectory.json", [])
    page = check_harmless(client.get("/desk").text)
    talks = [attributes["data-names"] for _, attributes in page.tags if attributes.get("data-view") == "talk"]
    assert talks == ['{"run": "home:threads/thread-1"}']
