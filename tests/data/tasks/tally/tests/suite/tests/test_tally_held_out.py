import pytest

from tally import main


@pytest.fixture
def tally(tmp_path, capsys):
    def run(text, *words):
        path = tmp_path / "data.csv"
        path.write_text(text)
        code = main([str(path), *words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err.replace(str(path), "FILE")

    return run


def test_empty_and_short_rows(tally):
    assert tally("a,b\n1, x \n2\n3,\n4,x\n", "b") == (0, "     2  (none)\n     2  x\n", "")


def test_case(tally):
    assert tally("w\nUp\nup\nDown\nUP\n", "w", "--ignore-case") == (0, "     3  up\n     1  down\n", "")


def test_case_counts_by_default(tally):
    assert tally("w\nb\nB\na\nb\n", "w", "--by", "name", "--top", "2") == (0, "     1  B\n     1  a\n", "")


def test_quoted_cells(tally):
    assert tally('q,r\n"a, b",1\n"a, b",2\n', "q") == (0, "     2  a, b\n", "")


def test_only_a_header(tally):
    assert tally("a,b\n", "a") == (0, "", "")


def test_an_empty_file(tally):
    assert tally("", "a") == (2, "", "tally: FILE: no header\n")


def test_top_below_one(tally):
    assert tally("a\n1\n", "a", "--top", "0") == (2, "", "tally: --top must be at least 1\n")
