from hypothesis import given
from hypothesis import strategies as st

from gametape.agent.tools.semantic_search import MAX_CHUNK_LINES, split_chunks

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
