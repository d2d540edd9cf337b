"""What people made of a thread's work, told to its vault: so it is known which notes were read where work was kept."""

from pathlib import Path

from gametape.desk.threads.thread import ThreadPlace
from gametape.desk.vault.vault import Vault


def tell_vault(trajectory: Path, succeeded: bool) -> None:
    """Say what came of a thread, whose record this is; of any other trajectory there is nothing to say."""
    place = ThreadPlace(trajectory.absolute().parent)
    if place.file.is_file() and place.trajectory.name == trajectory.name:
        thread = place.read()
        Vault.init(Path(thread.vault)).reads.ended(thread.thread_id, succeeded)
