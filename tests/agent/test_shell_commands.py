import pytest
from hypothesis import given
from hypothesis import strategies as st

from gametape.agent.shell_commands import split_commands, written_paths


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ls -l", [["ls", "-l"]]),
        ("cd a && git push; echo 'x; y' | cat", [["cd", "a"], ["git", "push"], ["echo", "x; y"], ["cat"]]),
        ("A=1 sudo -n git  push", [["git", "push"]]),
        ("env -i X=1 timeout 5 rm -rf x", [["rm", "-rf", "x"]]),
        ("g'i't pu\"sh\"", [["git", "push"]]),
        ("git \\\n push", [["git", "push"]]),
        ("if true; then rm x; fi", [["true"], ["rm", "x"], ["fi"]]),
        ("(rm a)", [["rm", "a"]]),
        ("rm a\nrm b", [["rm", "a"], ["rm", "b"]]),
    ],
)
def test_simple_commands_are_seen_through_their_clothes(text: str, found: list[list[str]]) -> None:
    assert split_commands(text) == found


@pytest.mark.parametrize(
    "text", ["bash -c 'git push'", "sh -ec \"sh -c 'git push'\"", "eval git push", "echo $(git push)", "x=`git push`"]
)
def test_commands_inside_commands_are_found(text: str) -> None:
    assert ["git", "push"] in split_commands(text)


def test_a_here_document_is_text_unless_a_shell_reads_it() -> None:
    text = "cat > a.py <<'E'\nrm -rf x\nE\nls"
    assert split_commands(text) == [["cat", ">", "a.py"], ["ls"]]
    assert ["rm", "-rf", "x"] in split_commands("bash <<E\nrm -rf x\nE")


def test_redirections_name_their_files() -> None:
    (words,) = split_commands("echo a > out.txt 2>> log < in")
    assert written_paths(words) == ["out.txt", "log"]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("rm -rf a b", ["a", "b"]),
        ("cp a b c", ["c"]),
        ("sed -i s/x/y/ a", ["s/x/y/", "a"]),
        ("sed s/x/y/ a", []),
        ("dd if=a of=b", ["b"]),
        ("/bin/mv a b", ["a", "b"]),
        ("git checkout HEAD a", ["checkout", "HEAD", "a"]),
        ("cat a", []),
    ],
)
def test_the_usual_programs_name_what_they_change(text: str, written: list[str]) -> None:
    assert written_paths(split_commands(text)[0]) == written


@given(st.text(alphabet="ab'\"\\$(){};&|<>`\n -=", max_size=60))
def test_no_text_is_too_odd(text: str) -> None:
    for words in split_commands(text):
        assert words
        written_paths(words)
