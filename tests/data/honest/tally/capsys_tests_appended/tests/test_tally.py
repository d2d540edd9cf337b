import pytest

from tally import format_line, main

PETS = "name,kind\nTom,cat\nRex,dog\nMia,cat\nBlub,fish\n"


@pytest.fixture
def pets(tmp_path):
    path = tmp_path / "pets.csv"
    path.write_text(PETS)
    return str(path)


def test_a_line():
    assert format_line("cat", 12) == "    12  cat"


def test_counts(pets, capsys):
    assert main([pets, "kind"]) == 0
    assert capsys.readouterr().out == "     2  cat\n     1  dog\n     1  fish\n"


def test_top(pets, capsys):
    assert main([pets, "kind", "--top", "1"]) == 0
    assert capsys.readouterr().out == "     2  cat\n"


def test_by_name(pets, capsys):
    main([pets, "name", "--by", "name"])
    assert capsys.readouterr().out.split() == ["1", "Blub", "1", "Mia", "1", "Rex", "1", "Tom"]


def test_no_such_file(capsys):
    assert main(["nowhere.csv", "kind"]) == 2
    printed = capsys.readouterr()
    assert printed.err == "tally: nowhere.csv: no such file\n"
    assert printed.out == ""


def test_no_such_column(pets, capsys):
    assert main([pets, "age"]) == 2
    assert capsys.readouterr().err == f"tally: {pets}: no column age (there are: name, kind)\n"


def test_top_larger_than_the_number_of_values(pets, capsys):
    assert main([pets, "kind", "--top", "99"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_argparse_complains_itself(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["--nonsense"])
    assert "usage" in capsys.readouterr().err
