"""Options of `gametape solve` that cannot be meant, refused in one line before anything is made."""

from pathlib import Path

import pytest

from gametape.cli.main import main

TASK = Path(__file__).parents[2] / "examples/tasks/slugs"


def test_an_attempt_is_never_mixed_with_other_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text("x = 1\n")
    with pytest.raises(SystemExit) as left:
        main(["solve", str(TASK), "--model", "scripted:expert", "--out", str(tmp_path), "--home", str(tmp_path / "h")])
    assert left.value.code == 2
    assert f"{tmp_path}: not empty; give --out the name of a new directory" in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} <= {"mine.py", "h"}


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--max-cost", "0"),
        ("--max-cost", "inf"),
        ("--max-cost", "nan"),
        ("--max-seconds", "inf"),
        ("--max-seconds", "nan"),
        ("--temperature", "inf"),
        ("--temperature", "nan"),
        ("--top-p", "nan"),
    ],
)
def test_a_number_that_is_no_bound_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as left:
        main(["solve", str(TASK), "--model", "scripted:expert", "--out", str(out), option, value])
    assert left.value.code == 2
    assert option in capsys.readouterr().err
    assert not out.exists()
