import pytest


@pytest.fixture
def csv_file(tmp_path):
    """Writes a CSV file for tests that I add later."""

    def write(*rows):
        path = tmp_path / "data.csv"
        path.write_text("".join(",".join(row) + "\n" for row in rows))
        return path

    return write
