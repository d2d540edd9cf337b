"""The desk's buttons in a real browser: each decides what it stands beside, and the page says what came of it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from gametape.desk.desk import open_desk
from gametape.desk.vault.review import review
from gametape.desk.vault.vault import NoteWriter, Vault
from gametape.record.journal_format import header_line, step_line
from tests.cli.command import run

from .chromium import ENTER, Chromium, script
from .site import open_site, served, step_of

pytestmark = pytest.mark.slow


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Two drafts and two changed notes."""
    home = tmp_path / "home"
    vault = Vault.init(home / "vault")
    with open_desk(home) as desk:
        for name in ("first", "second"):
            desk.outbox.draft(name, "thread-1", "ada@example.org", f"the {name} subject", f"the {name} body")
            vault.write(f"notes/{name}", f"of the {name} kind", NoteWriter("t", 1, f"t/{name}"))
    return home


@pytest.fixture
def desk_page(chromium: Chromium, tmp_path: Path, home: Path) -> Iterator[Chromium]:
    chromium.requested(), chromium.complaints()
    with served(open_site(tmp_path / "runs", home)) as studio:
        chromium.go(f"{studio}desk")
        yield chromium
        chromium.check_quiet(studio)


def states(home: Path) -> dict[str, str]:
    with open_desk(home) as desk:
        return {draft.subject: draft.state for draft in desk.outbox.list()}


def button(label: str, beside: str) -> str:
    """A selector of the button with this label in the article that has this text."""
    return f"[data-test='{label} {beside}']"


def press(page: Chromium, label: str, beside: str, with_key: bool = False) -> None:
    page.run(script("mark_button"), label, beside)
    if with_key:
        page.run("document.querySelector(arguments[0]).focus()", button(label, beside))
        page.press(ENTER)
    else:
        page.click(button(label, beside))
    page.wait("!document.querySelector('[data-test]') && document.querySelector('[role=status]')")


def test_a_draft_is_sent_or_rejected_and_the_other_waits(desk_page: Chromium, home: Path) -> None:
    press(desk_page, "approve and send", "the first body")
    assert states(home) == {"the first subject": "sent", "the second subject": "draft"}
    assert "the first body" not in desk_page.text()
    press(desk_page, "reject", "the second body", with_key=True)
    assert states(home) == {"the first subject": "sent", "the second subject": "rejected"}
    assert "rejected" in desk_page.text("[role=status]")


def test_a_note_is_accepted_or_taken_back(desk_page: Chromium, home: Path) -> None:
    vault = Vault.open(home / "vault")
    press(desk_page, "accept", "of the first kind")
    assert [change.note for change in review(vault)] == ["agent/notes/second"]
    press(desk_page, "take back", "of the second kind")
    assert review(vault) == []
    assert "first kind" in (vault.read("agent/notes/first") or "")
    assert "second kind" not in (vault.read("agent/notes/second") or "")


def test_what_changed_since_it_was_shown_is_not_decided(desk_page: Chromium, home: Path) -> None:
    vault = Vault.open(home / "vault")
    vault.write("notes/first", "something that nobody has seen", NoteWriter("t", 2, "t/later"))
    press(desk_page, "accept", "of the first kind")
    assert "was changed since you saw it" in desk_page.text("[role=status]")
    assert len(review(vault)) == 2
    assert run("outbox", "approve", _draft_id(home), "--home", home).code == 0
    press(desk_page, "reject", "the first body")
    assert states(home)["the first subject"] == "sent"


def test_a_conversation_goes_on_while_it_is_looked_at(chromium: Chromium, tmp_path: Path) -> None:
    thread = tmp_path / "home" / "threads" / "thread-1"
    thread.mkdir(parents=True)
    (thread / "thread.json").write_text(json.dumps({"title": "the shop"}))
    journal = thread / "trajectory.jsonl"
    journal.write_bytes(header_line({"schema_version": "ATIF-v1.7"}) + step_line(step_of(1), 0))
    chromium.requested(), chromium.complaints()
    with served(open_site(tmp_path / "runs", tmp_path / "home")) as studio:
        chromium.go(f"{studio}desk")
        chromium.wait_for_text("said 1", "[role=log]")
        with journal.open("ab") as file:
            file.write(step_line(step_of(2), 1))
        chromium.wait_for_text("said 2", "[role=log]")
        assert chromium.run("return document.querySelectorAll('[role=log] article').length") == 2
        chromium.check_quiet(studio)


def _draft_id(home: Path) -> str:
    with open_desk(home) as desk:
        return next(draft.id for draft in desk.outbox.list() if draft.subject == "the first subject")
