from pathlib import Path

from gametape.agent.notes import DirectoryNoteStore
from gametape.agent.tools.memory import RecallTool, RememberTool
from gametape.sandbox.scheduler import RewindableWorkspace
from tests.agent.tools.workspace import within


def test_notes_are_kept_listed_read_and_found(tmp_path: Path) -> None:
    notes = DirectoryNoteStore(tmp_path)
    remember, recall = RememberTool(notes), RecallTool(notes)

    async def talk(workspace: RewindableWorkspace) -> None:
        assert (await recall.call({}, workspace)).content == "there are no notes"
        kept = await remember.call({"name": "parser plan", "text": "first the lexer\nthen the parser\n"}, workspace)
        assert kept.content == "kept as parser plan"
        await remember.call({"name": "tests", "text": "the slow test hangs\n"}, workspace)
        assert (await recall.call({}, workspace)).content == "parser-plan: first the lexer\ntests: the slow test hangs"
        assert (await recall.call({"name": "parser plan"}, workspace)).content == "first the lexer\nthen the parser\n"
        found = await recall.call({"query": "Slow TEST"}, workspace)
        assert found.content.startswith("tests:1: the slow test hangs")
        assert (await recall.call({"query": "zebra"}, workspace)).content == "no note has these words"
        missing = await recall.call({"name": "parser-plam"}, workspace)
        assert missing.content == "recall: there is no note 'parser-plam'; there is parser-plan"
        assert (await remember.call({"name": "../..", "text": "x"}, workspace)).failed
        assert (await remember.call({"name": "a", "text": "x" * 30_000}, workspace)).refused

    within({}, talk)
