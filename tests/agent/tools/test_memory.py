from pathlib import Path

from gametape.agent.notes import DirectoryNoteStore
from gametape.agent.tools.memory import RecallTool, RememberTool
from gametape.sandbox.scheduler import RewindableWorkspace
from tests.agent.tools.workspace import within


def test_notes_are_kept_listed_read_and_found(tmp_path: Path) -> None:
    notes = DirectoryNoteStore(tmp_path)
    remember, recall = RememberTool(notes), RecallTool(notes)

    async def talk(environment: RewindableWorkspace) -> None:
        assert (await recall.call({}, environment)).content == "there are no notes"
        kept = await remember.call({"name": "parser plan", "text": "first the lexer\nthen the parser\n"}, environment)
        assert kept.content == "kept as parser plan"
        await remember.call({"name": "tests", "text": "the slow test hangs\n"}, environment)
        assert (
            await recall.call({}, environment)
        ).content == "parser-plan: first the lexer\ntests: the slow test hangs"
        assert (await recall.call({"name": "parser plan"}, environment)).content == "first the lexer\nthen the parser\n"
        found = await recall.call({"query": "Slow TEST"}, environment)
        assert found.content.startswith("tests:1: the slow test hangs")
        assert (await recall.call({"query": "zebra"}, environment)).content == "no note has these words"
        missing = await recall.call({"name": "parser-plam"}, environment)
        assert missing.content == "recall: there is no note 'parser-plam'; there is parser-plan"
        assert (await remember.call({"name": "../..", "text": "x"}, environment)).failed
        assert (await remember.call({"name": "a", "text": "x" * 30_000}, environment)).refused

    within({}, talk)
