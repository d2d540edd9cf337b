"""The record of a thread, opened to be read: a long one is not read whole, but for questions about all of it."""

from dataclasses import dataclass

from gametape.agent.record_digest import RecordDigest
from gametape.agent.recorded_steps import message_key
from gametape.core.step import Step
from gametape.core.trajectory import Trajectory
from gametape.desk.threads.thread import ThreadDirectory
from gametape.record.journal_steps import JournalSteps


@dataclass(frozen=True)
class ThreadRecord:
    """A thread's record: what it comes to, and its steps. `header` is all but the steps."""

    header: Trajectory
    steps: "JournalSteps | list[Step]"
    digest: RecordDigest

    @classmethod
    def open(cls, directory: ThreadDirectory) -> "ThreadRecord":
        if directory.trajectory == directory.journal:
            steps = JournalSteps.open(directory.journal)
            if steps is not None:
                return cls(steps.header, steps, directory.digest_file.load(steps))
        record = directory.load_trajectory()
        return cls(record, record.steps, RecordDigest.of(record.steps))

    def brief(self, index: int) -> Step:
        """A step, perhaps without its token ids."""
        return self.steps.brief(index) if isinstance(self.steps, JournalSteps) else self.steps[index]

    def latest(self, count: int | None) -> list[Step]:
        """The latest steps, or all of them, perhaps without their token ids."""
        size = len(self.steps)
        return [self.brief(index) for index in range(max(0, size - (count or size)), size)]

    def knows_message(self, key: str) -> bool:
        """Whether the message with this key is recorded."""
        if self.digest.message is not None and self.digest.message.key == key:
            return True
        if isinstance(self.steps, JournalSteps) and not self.steps.mentions(key):
            return False
        return any(message_key(step) == key for step in self.latest(None))


def thread_digest(directory: ThreadDirectory) -> RecordDigest:
    """What the record of a thread comes to."""
    path = directory.trajectory
    finished = directory.digest_file.load_finished(path) if path != directory.journal else None
    return finished or ThreadRecord.open(directory).digest
