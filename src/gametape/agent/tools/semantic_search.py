"""The tool `semantic_search`: find chunks of files by meaning, with local embeddings. Nothing leaves this machine."""

import asyncio
import hashlib
import re
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

from gametape.agent import text_file
from gametape.agent.tools import paths
from gametape.agent.tools.argument_schema import parameters_schema
from gametape.agent.tools.embedder import embedder
from gametape.agent.tools.tool import ValidatedTool
from gametape.core.errors import BadInput, MissingDependency
from gametape.core.messages import ToolResult
from gametape.core.protocols import Workspace

MAX_CHUNK_LINES = 60
_SHORTEST = 3
_HEADS = re.compile(
    r"^\s*(?:@|(?:async\s+def|def|class|func|fn|function|export|impl|struct|interface|public|static)\b)"
)


class TextChunk(NamedTuple):
    first: int
    """The number of its first line."""
    text: str


def split_chunks(text: str) -> list[TextChunk]:
    """The chunks of a text in order, without blank ones. Nothing is parsed: the text is hostile."""
    lines = text.split("\n")
    chunks: list[TextChunk] = []
    start = 0
    for index in range(1, len(lines) + 1):
        if index == len(lines) or index - start >= MAX_CHUNK_LINES or _begins(lines, start, index):
            piece = "\n".join(lines[start:index])
            if piece.strip():
                chunks.append(TextChunk(start + 1, piece.rstrip()))
            start = index
    return chunks


def _begins(lines: list[str], start: int, index: int) -> bool:
    """Whether a new chunk begins here: at a definition that no decorator precedes, or at a new paragraph at the left
    margin after enough lines."""
    line, before = lines[index], lines[index - 1]
    if _HEADS.match(line):
        return not before.lstrip().startswith("@")
    new_paragraph = not before.strip() and line.strip() and not line[0].isspace()
    return bool(new_paragraph) and index - start >= _SHORTEST


if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_ENDINGS = (
    ".py",
    ".pyi",
    ".md",
    ".rst",
    ".txt",
    ".toml",
    ".js",
    ".ts",
    ".go",
    ".rs",
    ".java",
    ".c",
    ".h",
    ".cpp",
    ".sh",
)
_MOST_FILES = 400
_MOST_BYTES = 200_000
_MOST_CHUNKS = 4000
_AT_A_TIME = 32
_SECONDS = 20.0
"""Computing time for one query. Chunks that share words with it come first; the rest waits for the next query."""
_MOST_KEPT = 20_000
_ANSWERS = 6
_SHOWN_LINES = 12


class EmbeddingCache:
    """Embeddings by content. All rollouts of a process share them."""

    def __init__(self, max_entries: int = _MOST_KEPT) -> None:
        self._max_entries = max_entries
        self._entries: OrderedDict[bytes, Floats] = OrderedDict()
        self._lock = threading.Lock()

    def embed(self, texts: list[str], seconds: float) -> "list[Floats | None]":
        """One vector for each text. Missing ones are computed in order until the time is up; the rest are None."""
        names = [hashlib.sha256(text.encode("utf-8", "replace")).digest() for text in texts]
        with self._lock:
            return self._computed(names, texts, seconds)

    def _computed(self, names: list[bytes], texts: list[str], seconds: float) -> "list[Floats | None]":
        missing = {name: text for name, text in zip(names, texts, strict=True) if name not in self._entries}
        todo, deadline = list(missing), time.monotonic() + seconds
        while todo and time.monotonic() < deadline:
            now, todo = todo[:_AT_A_TIME], todo[_AT_A_TIME:]
            self._entries.update(zip(now, embedder().embed([missing[name] for name in now]), strict=True))
        vectors = [self._entries.get(name) for name in names]
        for name in names:
            if name in self._entries:
                self._entries.move_to_end(name)
        while len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)
        return vectors


class SemanticSearchTool(ValidatedTool):
    name = "semantic_search"
    description = (
        "Find code or text by what it means, when the words are not known. For a known name or text use search: it is "
        "faster and complete."
    )
    parameters = parameters_schema(
        ("query",),
        query={"type": "string", "minLength": 3, "maxLength": 500, "description": "What to look for, in words."},
    )

    def __init__(self, embeddings: EmbeddingCache | None = None) -> None:
        self._embeddings = embeddings or EmbeddingCache()

    async def act(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:
        chunks, left_out = await _chunks(workspace)
        if not chunks:
            raise BadInput("there are no text files to search")
        try:
            ranked = await asyncio.to_thread(self._rank, arguments["query"], chunks)
            waiting = len(chunks) - len(ranked)
        except MissingDependency as error:
            return ToolResult(content=f"{self.name}: {error}", failed=True)
        parts = [_describe(path, chunk, score) for score, path, chunk in ranked[:_ANSWERS]]
        if left_out:
            parts.append(f"[{left_out:,} files or pieces were left out: there are too many, or they are too large]")
        if waiting:
            parts.append(
                f"[{waiting:,} of {len(chunks):,} pieces were not reached in time; asking again goes on with them]"
            )
        return ToolResult(content="\n\n".join(parts))

    def _rank(self, query: str, chunks: list[tuple[str, TextChunk]]) -> list[tuple[float, str, TextChunk]]:
        """The chunks that were reached in time, best first."""
        words = _words(query)
        chunks = sorted(chunks, key=lambda item: -len(words & _words(f"{item[0]} {item[1].text}")))
        whole, *vectors = self._embeddings.embed(
            [query, *(f"{path}\n{chunk.text}" for path, chunk in chunks)], _SECONDS
        )
        scored = [
            (float(vector @ whole), path, chunk)
            for vector, (path, chunk) in zip(vectors, chunks, strict=True)
            if vector is not None and whole is not None
        ]
        return sorted(scored, key=lambda item: (-item[0], item[1], item[2].first))


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{3,}", text.lower()))


async def _chunks(workspace: Workspace) -> tuple[list[tuple[str, TextChunk]], int]:
    """The chunks of the workspace's text files, and the number of files and chunks left out."""
    names = await paths.list_files(workspace, _ENDINGS)
    chunks: list[tuple[str, TextChunk]] = []
    left_out = max(0, len(names) - _MOST_FILES)
    for name in names[:_MOST_FILES]:
        try:
            content = await workspace.get(name)
        except BadInput:
            continue  # gone meanwhile, or a link by now
        text = text_file.decode_text(content) if len(content) <= _MOST_BYTES else None
        if text is None:
            left_out += 1
        else:
            chunks += ((name, chunk) for chunk in split_chunks(text.body))
    return chunks[:_MOST_CHUNKS], left_out + max(0, len(chunks) - _MOST_CHUNKS)


def _describe(path: str, chunk: TextChunk, score: float) -> str:
    lines = chunk.text.split("\n")
    head = f"{path}, lines {chunk.first}-{chunk.first + len(lines) - 1} ({score:.2f})"
    body = "\n".join(text_file.sanitize_text(line)[:200] for line in lines[:_SHOWN_LINES])
    return f"{head}\n{body}" + ("\n..." if len(lines) > _SHOWN_LINES else "")
