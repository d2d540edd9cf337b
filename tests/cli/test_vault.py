"""`gametape vault`, as a person types it."""

from pathlib import Path

from gametape.desk.vault.vault import NoteWriter, Vault

from .command import run


def test_a_person_reads_reviews_accepts_and_takes_back(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    where = ("--vault", vault)
    assert run("vault", "review", *where).code == 2
    assert run("vault", "init", *where, "--json").answer == {"vault": str(vault), "notes": 0}
    evil = "- [ ] ask \x1b]0;owned\x07Ada\nslow"
    Vault.open(vault).write("projects/ci", evil, NoteWriter("thread-1", 7, "thread-1/7/1"))
    shown = run("vault", "review", *where)
    assert "thread-1, turn 7" in shown.out
    assert "\x1b" not in shown.out
    [note] = run("vault", "review", *where, "--json").answer["notes"]
    assert (note["note"], note["diff"][-1], note["commits"][0]["turn"]) == ("projects/ci", "+slow", 7)
    [loop] = run("vault", "loops", *where, "--json").answer["loops"]
    assert (loop["note"], loop["line"], loop["commit"]["who"]) == ("projects/ci", 1, "thread-1")
    assert run("vault", "search", "slow", *where, "--json").answer["hits"][0]["line"] == 2
    missing = run("vault", "show", "projects/nothing", *where)
    assert (missing.code, missing.err) == (2, "gametape: there is no note projects/nothing\n")
    assert run("vault", "accept", *where, "--json").answer == {"accepted": ["projects/ci"]}
    taken_back = run("vault", "revert", "HEAD", *where, "--json")
    assert taken_back.answer["subject"].endswith("taken back")
    assert run("vault", "sync", "--remote", tmp_path / "nowhere", *where).code == 2
