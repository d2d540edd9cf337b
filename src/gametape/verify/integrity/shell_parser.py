"""Split shell text into the commands it starts: quotes, pipes, redirections, here-documents, nested `bash -c`."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

_HEREDOC = re.compile(r"<<-?\s*(['\"]?)([A-Za-z_]\w*)\1([^\n]*)\n(.*?)(?:\n[ \t]*\2[ \t]*(?=\n|$)|\Z)", re.DOTALL)
_ENDS = {";", "&&", "||", "|", "&", "(", ")", "|&", ";;", "\n"}
_WRAPPERS = {
    "sudo",
    "env",
    "time",
    "nice",
    "timeout",
    "xargs",
    "command",
    "exec",
    "nohup",
    "stdbuf",
    "then",
    "do",
    "else",
    "if",
    "while",
    "!",
    "{",
}
_LONGEST = 200_000


@dataclass(frozen=True)
class ParsedCommand:
    """One command: its words, the here-document it reads, and the files its output goes to."""

    words: list[str]
    stdin_text: str = ""
    output_paths: list[str] = field(default_factory=list)

    @property
    def program(self) -> str:
        return self.words[0].rsplit("/", 1)[-1] if self.words else ""

    @property
    def text(self) -> str:
        return " ".join(self.words)


def parse_commands(text: str, depth: int = 3) -> Iterator[ParsedCommand]:
    """Every command of a shell text, also of the texts it hands to other shells. Broken quotes end a line's reading."""
    bodies: list[str] = []

    def keep(match: re.Match[str]) -> str:
        bodies.append(match.group(4))
        return f" <<<HEREDOC{len(bodies) - 1} {match.group(3)}\n"

    for line in _lines(_HEREDOC.sub(keep, text[:_LONGEST])):
        for words in _split(line):
            command = _command(words, bodies)
            if command.words:
                yield command
                if depth and command.program in ("bash", "sh", "zsh", "dash") and "-c" in command.words[:-1]:
                    yield from parse_commands(command.words[command.words.index("-c") + 1], depth - 1)
                elif depth and command.program in ("bash", "sh") and command.stdin_text:
                    yield from parse_commands(command.stdin_text, depth - 1)


def _lines(text: str) -> Iterator[str]:
    """Lines as the shell sees them: a quote that is open at a line's end goes on in the next."""
    held = ""
    for line in text.replace("\\\n", " ").split("\n"):
        held = f"{held}\n{line}" if held else line
        try:
            shlex.split(held, comments=True)
        except ValueError:
            if len(held) < _LONGEST:
                continue
        yield held
        held = ""
    if held:
        yield held.replace("'", " ").replace('"', " ")


def _split(line: str) -> Iterator[list[str]]:
    reader = shlex.shlex(line, posix=True, punctuation_chars="();<>|&")
    reader.whitespace_split = True
    words: list[str] = []
    try:
        for word in reader:
            if word in _ENDS or set(word) <= set(";&|()"):
                yield words
                words = []
            else:
                words.append(word)
    except ValueError:
        pass
    yield words


def _command(words: list[str], bodies: list[str]) -> ParsedCommand:
    arguments: list[str] = []
    body, writes = "", []
    index = 0
    while index < len(words):
        word, following = words[index], words[index + 1] if index + 1 < len(words) else ""
        if match := re.fullmatch(r"HEREDOC(\d+)", word):
            body = bodies[int(match.group(1))]
        elif set(word) <= set("<>&") and word:
            if ">" in word and not following.isdigit():
                writes.append(following)
                index += 1
            elif not re.fullmatch(r"HEREDOC\d+", following):
                index += 1
        else:
            arguments.append(word)
        index += 1
    while arguments and (
        arguments[0] in _WRAPPERS
        or re.fullmatch(r"\w+=.*", arguments[0], re.DOTALL)
        or (arguments[0].startswith("-") and len(arguments) > 1)
        or re.fullmatch(r"\d+[smh]?", arguments[0])
    ):
        arguments.pop(0)
    if arguments and arguments[0] == "tee":
        writes += [word for word in arguments[1:] if not word.startswith("-")]
    return ParsedCommand(arguments, body, [path for path in writes if not path.startswith("/dev/")])
