"""Lets a virtual environment use the torch that this Python has already, and nothing else of its packages.

    python scripts/machine_torch.py LINKS

Links what belongs to torch (itself, Triton, the CUDA libraries) into the directory LINKS, and prints the version. Exits
1 with the reason on stderr where there is no torch, or none that gametape supports. Standard library only: it runs
before anything is installed.
"""

import re
import shutil
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

OLDEST, FIRST_UNKNOWN = (2, 11), (2, 14)
PARTS = re.compile(r"(torch|triton|pytorch-triton|nvidia|cuda)(-.*)?")


def main(links: Path) -> int:
    try:
        torch = metadata.distribution("torch")
    except metadata.PackageNotFoundError:
        print("it has no torch", file=sys.stderr)
        return 1
    numbers = re.match(r"(\d+)\.(\d+)", torch.version)
    if numbers is None or not OLDEST <= (int(numbers[1]), int(numbers[2])) < FIRST_UNKNOWN:
        supported = f"{OLDEST[0]}.{OLDEST[1]} to {FIRST_UNKNOWN[0]}.{FIRST_UNKNOWN[1] - 1}"
        print(f"its torch is {torch.version}, and {supported} are supported", file=sys.stderr)
        return 1
    shutil.rmtree(links, ignore_errors=True)
    links.mkdir(parents=True)
    for part in parts_of(torch):
        for place in top_level(part):
            link = links / place.name
            if not link.exists():
                link.symlink_to(place)
    print(torch.version)
    return 0


def parts_of(torch: metadata.Distribution) -> list[metadata.Distribution]:
    """torch and what it is made of, as far as it is installed."""
    found, waiting = {"torch": torch}, [torch]
    while waiting:
        for requirement in waiting.pop().requires or ():
            name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")
            if PARTS.fullmatch(name) and name not in found:
                try:
                    found[name] = metadata.distribution(name)
                except metadata.PackageNotFoundError:
                    continue
                waiting.append(found[name])
    return list(found.values())


def top_level(part: metadata.Distribution) -> Iterator[Path]:
    """The directories and modules beside which its metadata lies, and its metadata."""
    names = {file.parts[0] for file in part.files or () if not file.parts[0].startswith((".", "__pycache__"))}
    for name in sorted(names):
        place = Path(str(part.locate_file(name))).absolute()
        if place.exists():
            yield place


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
