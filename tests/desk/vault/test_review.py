"""What a person sees of a vault, accepts and takes back, and what two machines make of one."""

import subprocess
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.desk.vault.git import NETWORK
from gametape.desk.vault.note_queries import list_open_items, search_notes
from gametape.desk.vault.review import MARK, UnseenChange, accept, revert, review
from gametape.desk.vault.sync import sync
from gametape.desk.vault.vault import NoteWriter, Vault


def write(vault: Vault, name: str, text: str, turn: int = 1, attempt: str = "t") -> None:
    vault.write(name, text, NoteWriter(attempt, turn, f"{attempt}/{turn}/{name}"))


def history(vault: Vault) -> list[str]:
    return vault.repository.git("rev-list", "HEAD").decode().split()


def test_review_shows_what_is_new_with_its_writer_and_accepting_moves_the_mark(tmp_path: Path) -> None:
    vault = Vault.init(tmp_path / "vault")
    assert review(vault) == []
    write(vault, "ci", "slow\nred", 3)
    write(vault, "people/ada", "likes tables", 4)
    (vault.root / "agent/ci.md").write_text("slow\ngreen\n")
    ci, ada = review(vault)
    assert ci.diff == ("@@ -0,0 +1,2 @@", "+slow", "+green")
    assert [(commit.who == "t", commit.turn) for commit in ci.commits] == [(False, None), (True, 3)]
    assert ada.commits[0].author_text == "t, turn 4"
    assert accept(vault, ["people/ada"]) == ["people/ada"]
    assert [one.note for one in review(vault)] == ["agent/ci"]
    write(vault, "people/ada", "likes tables\nand chairs", 5)
    assert review(vault)[1].diff[1:] == (" likes tables", "+and chairs")
    assert accept(vault) == ["agent/ci", "people/ada"]
    assert review(vault) == []
    assert vault.repository.resolve(MARK) == vault.repository.head
    with pytest.raises(BadInput, match="nowhere"):
        accept(vault, ["nowhere"])


def test_only_what_was_seen_is_accepted_or_taken_back(tmp_path: Path) -> None:
    vault = Vault.init(tmp_path / "vault")
    write(vault, "people/ada", "likes tables", 1)
    write(vault, "people/bob", "likes chairs", 1)
    seen = {change.note: change.version for change in review(vault)}
    write(vault, "people/ada", "likes what nobody has seen", 2)
    (vault.root / "people/bob.md").write_text("by hand, and not committed yet\n")
    before = history(vault)
    for names in (["people/ada"], ["people/bob"], ["people/ada", "people/bob"], []):
        with pytest.raises(UnseenChange, match="changed since you saw it"):
            accept(vault, names, seen)
    with pytest.raises(UnseenChange):
        revert(vault, "people/ada", seen["people/ada"])
    with pytest.raises(UnseenChange):
        revert(vault, before[0], seen["people/ada"])
    assert [change.note for change in review(vault)] == ["people/ada", "people/bob"]
    assert vault.read("people/ada") == "likes what nobody has seen\n"
    ada, bob = review(vault)
    assert accept(vault, [ada.note], {ada.note: ada.version}) == ["people/ada"]
    with pytest.raises(UnseenChange):
        accept(vault, [ada.note], {ada.note: ada.version})
    revert(vault, bob.note, bob.version)
    assert review(vault) == []


def test_taking_back_is_a_new_commit(tmp_path: Path) -> None:
    vault = Vault.init(tmp_path / "vault")
    write(vault, "plan", "one\ntwo\nthree\nfour\nfive", 1)
    accept(vault)
    write(vault, "plan", "ONE\ntwo\nthree\nfour\nfive", 2)
    middle = vault.repository.head
    write(vault, "plan", "ONE\ntwo\nthree\nfour\nFIVE", 3)
    before = history(vault)
    assert middle is not None
    revert(vault, middle[:12])
    assert vault.read("plan") == "one\ntwo\nthree\nfour\nFIVE\n"
    revert(vault, "plan")
    assert vault.read("plan") == "one\ntwo\nthree\nfour\nfive\n"
    assert history(vault)[2:] == before
    for what in ("plan", middle, "nothing", "--all"):
        with pytest.raises(BadInput):
            revert(vault, what)
    write(vault, "new", "x", 4)
    revert(vault, "new")
    assert vault.read("new") is None


def test_open_loops_have_an_age_and_an_owner(tmp_path: Path) -> None:
    vault = Vault.init(tmp_path / "vault")
    write(vault, "projects/desk", "# Desk\n- [x] done\n- [ ] ask Ada\n", 1, "t1")
    write(vault, "ci", "Open: why is it red?\nnot open: this", 2, "t2")
    (vault.root / "projects/desk.md").write_text("# Desk\n- [x] done\n- [ ] ask Ada\n  * [ ] by hand\n")
    found = list_open_items(vault)
    assert {(loop.note, loop.line, loop.text) for loop in found} == {
        ("projects/desk", 3, "ask Ada"),
        ("agent/ci", 1, "why is it red?"),
        ("projects/desk", 4, "by hand"),
    }
    assert {loop.text: loop.commit.turn for loop in found} == {"ask Ada": 1, "why is it red?": 2, "by hand": None}


def test_search_puts_the_whole_phrase_before_many_words(tmp_path: Path) -> None:
    vault = Vault.init(tmp_path / "vault")
    write(vault, "a", "red and slow builds on ci\nci is slow")
    write(vault, "slow-things", "first line", 2)
    assert [(hit.note, hit.line) for hit in search_notes(vault, "ci is  SLOW")] == [
        ("agent/a", 2),
        ("agent/a", 1),
        ("agent/slow-things", 1),
    ]
    assert search_notes(vault, "zebra") == []


def test_two_machines_diverge_and_lose_nothing(tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(bare)], check=True)
    one, two = Vault.init(tmp_path / "one"), Vault.init(tmp_path / "two")
    write(one, "shared", "one\ntwo\nthree\nfour\nfive\nsix", 1, "t1")
    assert sync(one, str(bare))[:2] == (0, 2)
    assert sync(two, str(bare)).pulled >= 1
    sync(one, str(bare))
    both = {history(one)[0], *history(two)}
    write(one, "shared", "ONE\ntwo\nthree\nfour\nfive\nsix", 2, "t1")
    write(one, "port", "1", 3, "t1")
    two.read_by("shared", "t2", 1)
    write(two, "shared", "one\ntwo\nthree\nfour\nfive\nSIX", 2, "t2")
    write(two, "port", "1", 3, "t2")
    for vault in (one, two, one):
        sync(vault, str(bare))
    assert one.read("shared") == two.read("shared") == "ONE\ntwo\nthree\nfour\nfive\nSIX\n"
    write(one, "port", "2", 4, "t1")
    write(two, "port", "3", 4, "t2")
    sync(one, str(bare))
    assert sync(two, str(bare)).aside == ("agent/port",)
    sync(one, str(bare))
    assert history(one) == history(two)
    assert both <= set(history(one))
    for vault in (one, two):
        assert vault.read("port") == "3\n"
        assert vault.read("port-conflict-elsewhere") == "2\n"
        assert vault.repository.git("status", "--porcelain") == b""
    assert sync(one, str(bare)) == (0, 0, ())


def test_a_hostile_tree_of_another_machine_is_refused(tmp_path: Path) -> None:
    vault, evil = Vault.init(tmp_path / "vault"), Vault.init(tmp_path / "evil")
    git = evil.repository.git
    blob = git("hash-object", "-w", "--stdin", data=b"[core]\n").decode().strip()
    inner = git("mktree", data=f"100644 blob {blob}\tconfig\n".encode()).decode().strip()
    tree = git("mktree", data=f"040000 tree {inner}\t.git\n".encode()).decode().strip()
    head = vault.repository.head
    git("fetch", "-q", "--", str(vault.root), "main:refs/heads/theirs", env=NETWORK)
    made = evil.repository.bare_commit(tree, "evil\n", [str(evil.repository.resolve("theirs"))])
    git("update-ref", "refs/heads/main", made)
    before = (vault.root / ".git/config").read_bytes()
    with pytest.raises(BadInput):
        sync(vault, str(evil.root))
    assert vault.repository.head == head
    assert (vault.root / ".git/config").read_bytes() == before


@pytest.mark.parametrize("remote", ["", "--upload-pack=touch x", "ext::sh -c touch% x", "/nowhere"])
def test_a_remote_that_is_none_is_refused_in_one_line(tmp_path: Path, remote: str) -> None:
    vault = Vault.init(tmp_path / "vault")
    with pytest.raises(BadInput) as caught:
        sync(vault, remote)
    assert "\n" not in str(caught.value)
    assert not (vault.root / "x").exists()


def _trap(path: Path, sprung: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ntouch {sprung}\ncat >/dev/null\n")
    path.chmod(0o755)
    return path


def test_nothing_of_a_remote_on_this_machine_is_run(tmp_path: Path) -> None:
    """Git runs the other side here: its hooks, and the programs that its configuration names."""
    other, sprung = tmp_path / "other.git", tmp_path / "sprung"
    subprocess.run(["git", "init", "-q", "--bare", "--initial-branch=main", other], check=True)
    for hook in ("pre-receive", "update", "post-receive", "post-update", "reference-transaction"):
        _trap(other / "hooks" / hook, sprung)
    (other / "objects/info/alternates").write_text(str(tmp_path / "vault/.git/objects"))
    trap = _trap(tmp_path / "trap", sprung)
    subprocess.run(["git", "-C", other, "config", "core.alternateRefsCommand", trap], check=True)
    vault = Vault.init(tmp_path / "vault")
    write(vault, "ci", "slow")
    for remote in (str(other), f"file://{other}"):
        write(vault, "ci", f"slow {remote}", len(remote))
        assert sync(vault, remote).pushed
    assert not sprung.exists()


def test_no_setting_of_a_vault_opens_a_transport(tmp_path: Path) -> None:
    vault, sprung = Vault.init(tmp_path / "vault"), tmp_path / "sprung"
    vault.repository.git("config", "protocol.ext.allow", "always")
    with pytest.raises(BadInput, match="not allowed"):
        sync(vault, f"ext::sh -c touch% {sprung}")
    assert not sprung.exists()


def test_commits_of_another_machine_cannot_garble_the_review(tmp_path: Path) -> None:
    vault = Vault.init(tmp_path / "vault")
    write(vault, "ci", "slow")
    repository = vault.repository
    with repository.locked():
        forged = repository.store_blob(b"x\n")
        path = "agent/x\nGametape-Key: t/9/ci\n.md"
        repository.commit({"agent/y.md": forged, path: forged}, "one\x01two\x01\n\nGametape-Turn: ten\n")
    assert [one.note for one in review(vault)] == ["agent/ci", "agent/y"]
    assert vault.names() == ["agent/ci", "agent/y"]
