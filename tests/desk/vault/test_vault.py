"""Notes that nobody loses: keys, kills, hand edits, hostile names, and writers that do not know of each other."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gametape.core.errors import BadInput
from gametape.desk.vault.git import VaultGit
from gametape.desk.vault.note_files import clean_name
from gametape.desk.vault.notes import VaultNotes, vault_tools
from gametape.desk.vault.repository import VaultRepository, list_commits
from gametape.desk.vault.vault import NoteWriter, NoteWriteResult, Vault

from ..steps import Killed


def log(vault: Vault) -> list[str]:
    return vault.repository.git("log", "--reverse", "--format=%s").decode().splitlines()


def by(attempt: str, turn: int = 1, number: int = 0) -> NoteWriter:
    return NoteWriter(attempt, turn, f"{attempt}/{turn}/{number}")


def test_a_write_is_a_commit_that_names_its_turn_and_happens_once(tmp_path: Path) -> None:
    vault = Vault.init(tmp_path / "vault")
    assert vault.write("Build flags", "use -O2", by("t1", 4)) == NoteWriteResult("agent/build-flags", "kept")
    assert vault.write("Build flags", "use -O2", by("t1", 4)) == NoteWriteResult("agent/build-flags", "kept")
    assert vault.write("Build flags", "another model's words", by("t1", 4)) == NoteWriteResult(
        "agent/build-flags", "kept"
    )
    assert (vault.root / "agent/build-flags.md").read_text() == "use -O2\n"
    assert log(vault) == ["A vault", "agent/build-flags: remembered"]
    last = list_commits(vault.repository, "-1")[0]
    assert (last.who, last.turn, last.paths) == ("t1", 4, ("agent/build-flags.md",))
    assert VaultGit(vault.root)("status", "--porcelain") == b""


def test_a_key_that_begins_another_is_another(tmp_path: Path) -> None:
    vault = Vault.init(tmp_path / "vault")
    vault.write("a", "ten", by("t", 1, 10))
    vault.write("b", "one", by("t", 1, 1))
    assert vault.read("b") == "one\n"


@pytest.mark.parametrize("at", ["_move_branch", "_write_file", "_finish_pending", "after"])
def test_killed_anywhere_a_write_is_made_once_and_is_no_persons_edit(
    tmp_path: Path, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = Vault.init(tmp_path / "vault")
    vault.write("plan", "old", by("t", 1))

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        if at == "after":
            patched.setattr("gametape.desk.vault.vault._message", _then_die(patched, vault))
        elif at == "_finish_pending":
            lives = iter([VaultRepository._finish_pending])

            def settle(self: VaultRepository) -> None:
                next(lives, die)(self)

            patched.setattr(VaultRepository, "_finish_pending", settle)
        else:
            patched.setattr(VaultRepository, at, die)
        with pytest.raises(Killed):
            vault.write("plan", "new", by("t", 2))
    assert vault.write("plan", "new", by("t", 2)) == NoteWriteResult("agent/plan", "kept")
    assert vault.read("plan") == "new\n"
    assert log(vault) == ["A vault", "agent/plan: remembered", "agent/plan: remembered"]


def _then_die(patched: pytest.MonkeyPatch, vault: Vault) -> object:
    """Dies when the commit was made and before anything was told about it."""
    from gametape.desk.vault import vault as module

    real = module._message
    commit = VaultRepository.commit

    def dies(self: VaultRepository, *words: object) -> str:
        commit(self, *words)  # type: ignore[arg-type]
        raise Killed

    patched.setattr(VaultRepository, "commit", dies)
    return real


def test_a_person_edits_without_git_and_is_never_written_over(tmp_path: Path) -> None:
    vault = Vault.init(tmp_path / "vault")
    notes = VaultNotes(vault, "t", lambda: 1)
    asyncio.run(notes.keep("plan", "one\ntwo\nthree\nfour"))
    (vault.root / "agent/plan.md").write_text("ONE\ntwo\nthree\nfour\n")
    (vault.root / "people/Ada Lovelace.md").write_text("likes tables\n")
    assert asyncio.run(notes.keep("plan", "one\ntwo\nthree\nFOUR")) == NoteWriteResult("agent/plan", "merged")
    assert vault.read("plan") == "ONE\ntwo\nthree\nFOUR\n"
    assert vault.read("people/Ada Lovelace") == "likes tables\n"
    assert "agent/plan, people/Ada Lovelace: edited by hand" in log(vault)


def test_contradicting_writers_keep_both_and_the_second_is_told(tmp_path: Path) -> None:
    vault = Vault.init(tmp_path / "vault")
    one, two = (VaultNotes(vault, name, lambda: 1) for name in ("t1", "t2"))
    remember, recall = vault_tools(two)

    async def main() -> None:
        await one.keep("port", "the port is 1")
        assert await two.read("port") == "the port is 1\n"
        await one.keep("port", "the port is 2")
        output = await remember.call({"name": "port", "text": "the port is 3"}, None)  # type: ignore[arg-type]
        assert "agent/port-conflict-t2" in output.content
        assert vault.read("port") == "the port is 2\n"
        assert vault.read("port-conflict-t2") == "the port is 3\n"
        again = await remember.call({"name": "port", "text": "the port is 4"}, None)  # type: ignore[arg-type]
        assert "agent/port-conflict-t2-2" in again.content
        listed = (await recall.call({}, None)).content  # type: ignore[arg-type]
        assert "agent/port: the port is 2" in listed
        assert (await recall.call({"query": "port 3"}, None)).content.startswith("agent/port-conflict-t2:1:")  # type: ignore[arg-type]

    asyncio.run(main())


def test_what_two_add_at_the_same_place_both_stays(tmp_path: Path) -> None:
    vault = Vault.init(tmp_path / "vault")
    vault.write("log", "monday", by("t1"))
    for name in ("t1", "t2"):
        vault.read_by("log", name, 1)
    vault.write("log", "monday\ntuesday", by("t1", 2))
    assert vault.write("log", "monday\nwednesday", by("t2", 2)).how == "merged"
    assert set((vault.read("log") or "").split()) == {"monday", "tuesday", "wednesday"}


ADDED = st.tuples(st.sampled_from("AB"), st.sampled_from(["read", "top", "middle", "bottom", "change"]))


@settings(max_examples=6, deadline=None, suppress_health_check=[*HealthCheck], derandomize=True)
@given(st.lists(ADDED, min_size=1, max_size=7))
def test_no_interleaving_of_two_writers_loses_a_line(
    tmp_path_factory: pytest.TempPathFactory, moves: list[tuple[str, str]]
) -> None:
    vault = Vault.init(tmp_path_factory.mktemp("vault") / "v")
    first = ["head", "a", "b", "c", "tail"]
    known = {"A": list(first), "B": list(first)}
    vault.write("n", "\n".join(first), by("X"))
    for who in known:
        vault.read_by("n", who, 0)
    written: set[str] = set()
    for turn, (who, what) in enumerate(moves, start=1):
        if what == "read":
            known[who] = (vault.read_by("n", who, turn) or "").splitlines()
            continue
        line = f"{who}{turn}"
        lines = known[who]
        if what == "change" and "b" in lines:
            lines[lines.index("b")] = line
        else:
            lines.insert({"top": 0, "middle": len(lines) // 2}.get(what, len(lines)), line)
        written.add(line)
        vault.write("n", "\n".join(lines), by(who, turn))
    stored = {line for note in vault.names() for line in (vault.read(note) or "").splitlines()}
    assert written <= stored


def test_writers_in_threads_and_processes_wait_for_each_other(tmp_path: Path) -> None:
    vault = Vault.init(tmp_path / "vault")
    code = (
        "import sys; from pathlib import Path; from gametape.desk.vault.vault import NoteWriter, Vault\n"
        "vault = Vault.open(Path(sys.argv[1]))\n"
        "for n in range(3): vault.write('p%d' % n, 'from a process', NoteWriter('p', n, f'p/{n}'))\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(vault.root)])

    def write(name: str) -> None:
        for turn in range(2):
            vault.write(f"{name}-{turn}", "from a thread", by(name, turn))

    threads = [threading.Thread(target=write, args=(name,)) for name in ("x", "y")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert process.wait() == 0
    assert len(vault.names()) == 7
    assert len(log(vault)) == 8


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("../../etc/passwd", "agent/etc/passwd"),
        (".git/config", "agent/git/config"),
        ("people/../.git/hooks/pre-commit", "people/git/hooks/pre-commit"),
        ("/people//Ada.md", "people/ada"),
        ("projects/x\n- [ ] y", "projects/x-y"),
        ("a" * 500, "agent/" + "a" * 64),
        ("-rf", "agent/rf"),
        ("\u202egnp.exe", "agent/gnp-exe"),
    ],
)
def test_no_name_leaves_the_vault(name: str, cleaned: str) -> None:
    assert clean_name(name) == cleaned


@pytest.mark.parametrize("name", ["", "...", "people", "a/b/c/d/e", "\u4e16"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(BadInput):
        clean_name(name)


def test_links_are_neither_read_nor_written_through(tmp_path: Path) -> None:
    vault = Vault.init(tmp_path / "vault")
    secret = tmp_path / "secret.md"
    secret.write_text("secret")
    (vault.root / "agent/leak.md").symlink_to(secret)
    (vault.root / "projects/out").symlink_to(tmp_path)
    (vault.root / "agent/directory.md").mkdir()
    assert vault.read("agent/directory") is None
    assert vault.read("agent/leak") is None
    assert vault.read("projects/out/secret") is None
    for name in ("agent/leak", "projects/out/secret"):
        with pytest.raises(BadInput, match="link"):
            vault.write(name, "mine", by("t"))
    assert secret.read_text() == "secret"


def test_bounds_and_odd_text(tmp_path: Path) -> None:
    vault = Vault.init(tmp_path / "vault")
    for text in ("", " \n", "x" * 20_001):
        with pytest.raises(BadInput):
            vault.write("a", text, by("t"))
    with pytest.raises(BadInput, match="key"):
        vault.write("a", "x", NoteWriter("t", 1, "k\nGametape-Key: other"))
    vault.write("a", "nul \0 half \ud800 end\r\n", by("t"))
    assert vault.read("a") == "nul  half ? end\n"


def test_hooks_and_settings_of_others_do_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vault = Vault.init(tmp_path / "vault")
    ran = tmp_path / "ran"
    hooks = vault.root / ".git/hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-commit", "post-commit", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {ran}\n")
        (hooks / name).chmod(0o755)
    (tmp_path / ".gitconfig").write_text(f"[core]\n\tfsmonitor = touch {ran}\n[commit]\n\tgpgSign = true\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    vault.write("a", "x", by("t"))
    assert not ran.exists()
    assert vault.read("a") == "x\n"


def test_what_was_read_in_attempts_that_succeeded_is_known(tmp_path: Path) -> None:
    vault = Vault.init(tmp_path / "vault")
    vault.write("good", "x", by("w"))
    vault.write("bad", "x", by("w", 2))
    for attempt, note in (("a", "good"), ("a", "good"), ("b", "good"), ("b", "bad"), ("c", "bad")):
        vault.read_by(note, attempt, 1)
    vault.reads.record_outcome("a", succeeded=True)
    vault.reads.record_outcome("b", succeeded=False)
    assert [tuple(use) for use in vault.reads.usage()] == [("agent/good", 1, 1, 0), ("agent/bad", 0, 1, 1)]


_ID = "a" * 40


@pytest.mark.parametrize(
    "left",
    [
        b"[1]",
        b"\xff\xfe",
        b'{"commit": 3, "paths": []}',
        f'{{"commit": "{_ID}", "paths": {{"../out.md": [null, null]}}}}'.encode(),
        f'{{"commit": "{_ID}", "paths": {{"people/\\ud800.md": [null, null]}}}}'.encode(),
        f'{{"commit": "{_ID}", "paths": {{"people/\\u0000.md": [null, null]}}}}'.encode(),
        f'{{"commit": "{_ID}", "paths": {{"people/a.md": ["--all", null]}}}}'.encode(),
    ],
)
def test_a_pending_commit_that_nobody_wrote_is_refused_in_one_line(left: bytes, tmp_path: Path) -> None:
    vault = Vault.init(tmp_path / "vault")
    pending = vault.repository.state_directory / "pending.json"
    pending.write_bytes(left)
    with pytest.raises(BadInput) as refused:
        vault.write("a", "b", by("t"))
    assert len(str(refused.value).splitlines()) == 1
    assert pending.read_bytes() == left
