"""Replay a week at the desk, and write docs/a-week.md with the output of every command.

    python scripts/week.py [--out FILE]

The source is examples/week/week.md: prose, and blocks of commands that begin with `$ `. The commands run one after the
other in one shell, in a temporary home directory; the models are scripts. The document is the same text with the output
under each command, in a terminal of 100 columns; the name of the temporary directory is replaced by /home/ann, and
nothing else is changed.

A command that is to fail ends in `# exit code N`. `{goal}`, `{thread}` and `{draft}` are the first such id that was
printed. `<!-- until: COMMAND -->` waits for a command to succeed, `<!-- run: COMMAND -->` runs one; neither is shown.

Exits 1 if a command ended with an unexpected exit code.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_HOME = "/home/ann"
_IDENTITY = {"NAME": "Ann", "EMAIL": "ann@club.example"}
_ID = re.compile(r"\b(goal|thread|draft)-\d{8}-[0-9a-f]{6}\b")
_HIDDEN = re.compile(r"<!-- (run|until): (.*) -->")
_MARK = "\x1eexit code "
_SECONDS = 300.0


class UnexpectedExit(Exception):
    """A command ended with an unexpected exit code."""


class Shell:
    """One bash for the whole week, so that a server in the background keeps running."""

    def __init__(self, home: Path) -> None:
        identity = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in _IDENTITY.items()}
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=home,
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith(("GAMETAPE_", "XDG_"))},
                **identity,
                "GIT_CONFIG_GLOBAL": os.devnull,
                "HOME": str(home),
                "GAMETAPE": str(ROOT),
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "COLUMNS": "100",
                "TERM": "dumb",
            },
        )

    def run(self, command: str) -> tuple[int, str]:
        """Its exit code, and what it printed."""
        assert self._bash.stdin
        assert self._bash.stdout
        self._bash.stdin.write(f"{{ {command}\n}} < /dev/null\nprintf '\\036exit code %s\\n' $?\n")
        self._bash.stdin.flush()
        printed = ""
        for line in self._bash.stdout:
            before, mark, code = line.partition(_MARK)
            printed += before
            if mark:
                return int(code), printed
        raise UnexpectedExit(f"the shell ended: {command}")

    def close(self) -> None:
        self._bash.communicate("jobs -p | xargs -r kill; wait\n")


class Week:
    def __init__(self, home: Path, shell: Shell) -> None:
        self._home, self._shell = home, shell
        self._ids: dict[str, str] = {}

    def replay(self, text: str) -> Iterator[str]:
        """The document, line by line."""
        for line in text.splitlines():
            hidden = _HIDDEN.fullmatch(line)
            if hidden:
                self._run_hidden(hidden[1] == "until", self._fill_ids(hidden[2]))
            elif line.startswith("$ "):
                command = self._fill_ids(line[2:])
                yield f"$ {command}"
                yield from self._run_shown(command).splitlines()
            else:
                yield line

    def _run_shown(self, command: str) -> str:
        print(f"$ {command}", file=sys.stderr, flush=True)
        expected = re.search(r"# exit code (\d+)$", command)
        code, printed = self._shell.run(command)
        if code != int(expected[1] if expected else 0):
            raise UnexpectedExit(f"{command}: exit code {code}\n{printed}")
        for match in _ID.finditer(printed):
            self._ids.setdefault(match[1], match[0])
        return printed.replace(str(self._home), _HOME)

    def _run_hidden(self, until: bool, command: str) -> None:
        deadline = time.monotonic() + _SECONDS
        while (code := self._shell.run(command)[0]) and until and time.monotonic() < deadline:
            time.sleep(0.2)
        if code:
            raise UnexpectedExit(f"{command}: exit code {code}")

    def _fill_ids(self, command: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda match: self._ids.get(match[1], match[0]), command)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "a-week.md")
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory(prefix="gametape-week-") as root:
        shell = Shell(Path(root))
        try:
            lines = list(Week(Path(root), shell).replay((ROOT / "examples" / "week" / "week.md").read_text()))
        except UnexpectedExit as error:
            print(error, file=sys.stderr)
            return 1
        finally:
            shell.close()
    out.write_text("\n".join(line.rstrip() for line in lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
