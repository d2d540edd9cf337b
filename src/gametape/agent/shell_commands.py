"""Which simple commands a shell command line would run, and which files they would write, from its text alone.

Separators, quotes, assignments, the usual prefixes (`sudo`, `env`, `nohup` ...), `bash -c` and `eval` are parsed. It is
a best effort: a shell can hide a command in ways that only running it shows, so constraints are checked afterwards too.
"""

import bisect
import itertools
import re
import shlex

_SEPARATORS = frozenset({";", "&&", "||", "|", "|&", "&", "\n", "(", ")", "{", "}", ";;"})
_PREFIXES = frozenset(
    (
        *("sudo", "env", "nohup", "time", "command", "builtin", "exec", "nice", "setsid", "stdbuf", "xargs", "timeout"),
        *("then", "do", "else", "elif", "if", "while", "until", "!"),
    )
)
_SHELLS = frozenset({"bash", "sh", "dash", "zsh"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_REDIRECTION = re.compile(r"^\d*(?:[<>]{1,3}|&>>?|<>|>\|)&?$")
_SUBSTITUTION = re.compile(r"\$\(([^()]*)\)|`([^`]*)`")
_CHANGERS = frozenset(
    (
        *("rm", "rmdir", "unlink", "shred", "mv", "tee", "touch", "truncate", "ln", "chmod", "chown", "mkdir", "patch"),
        *("mkfifo", "mknod"),
    )
)
_COPIERS = frozenset({"cp", "install", "rsync", "scp"})
_EDITORS = frozenset({"sed", "perl", "ruby"})
_GIT_CHANGERS = frozenset({"rm", "mv", "restore", "checkout", "clean"})
_HEREDOC = re.compile(r"<<-?[ \t]*(['\"]?)(\w+)\1")
_DEEPEST = 5


def split_commands(text: str, depth: int = 0) -> list[list[str]]:
    """The simple commands of a command line, each as its words without quotes."""
    if depth > _DEEPEST:
        return []
    commands: list[list[str]] = []
    for words in _split(_without_heredocs(text)):
        bare = _without_prefixes(words)
        if bare:
            commands.append(bare)
            commands += _inner(bare, depth)
    for match in _SUBSTITUTION.finditer(text):
        commands += split_commands(match[1] or match[2] or "", depth + 1)
    return commands


def _inner(words: list[str], depth: int) -> list[list[str]]:
    """The commands that `eval` or a shell with `-c` would run."""
    program = words[0].rpartition("/")[2]
    if program == "eval":
        return split_commands(" ".join(words[1:]), depth + 1)
    if program in _SHELLS:
        flags = (index for index, word in enumerate(words[:-1]) if re.fullmatch(r"-[a-z]*c[a-z]*", word))
        return [command for index in flags for command in split_commands(words[index + 1], depth + 1)]
    return []


def _without_heredocs(text: str) -> str:
    """Drop here-documents, except those of a shell, which are commands. Takes time linear in the text."""
    lines = text.split("\n")
    ends: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        ends.setdefault(line.lstrip(" \t"), []).append(number)
    remaining: list[str] = []
    here = 0
    while here < len(lines):
        line = lines[here]
        heredoc = _HEREDOC.search(line)
        later = ends.get(heredoc[2], []) if heredoc else []
        at = bisect.bisect_right(later, here)
        if heredoc is None or at == len(later):
            remaining.append(line)
            here += 1
            continue
        end = later[at]
        remaining.append(f"{line[: heredoc.start()]} {line[heredoc.end() :]}")
        words = re.split(r"[;&|]", line[: heredoc.start()])[-1].split()
        if any(word.rpartition("/")[2] in _SHELLS for word in words):
            remaining += lines[here + 1 : end]
        remaining.append("")
        here = end + 1
    return "\n".join(remaining)


def _split(text: str) -> list[list[str]]:
    """Split at separators that are not quoted; at white space, where the quotes do not match."""
    lexer = shlex.shlex(text.replace("\\\n", " "), posix=True, punctuation_chars=";&|(){}<>\n")
    lexer.whitespace, lexer.commenters = " \t\r", ""
    try:
        words = list(lexer)
    except ValueError:
        words = re.sub(r"([;&|()\n])", r" \1 ", text).replace('"', "").replace("'", "").split(" ")
    commands: list[list[str]] = [[]]
    for word in words:
        if word in _SEPARATORS or (word and set(word) <= set(";&|(){}\n")):
            commands.append([])
        elif word:
            commands[-1].append(word)
    return commands


def _without_prefixes(words: list[str]) -> list[str]:
    """The words from the program's name on. Redirections stay: they name files."""
    index = 0
    prefixed = False
    while index < len(words):
        word = words[index]
        if word.rpartition("/")[2] in _PREFIXES:
            prefixed = True
        elif not (_ASSIGNMENT.match(word) or (prefixed and re.fullmatch(r"-\S*|\d+[smh]?", word))):
            break
        index += 1
    return words[index:]


def written_paths(words: list[str]) -> list[str]:
    """The files that a command would write, remove or change: the targets of redirections and the arguments of the
    usual programs."""
    redirected = [
        after
        for word, after in itertools.pairwise(words)
        if ">" in word and _REDIRECTION.match(word) and not after.isdigit()
    ]
    program, arguments = words[0].rpartition("/")[2], [word for word in words[1:] if not word.startswith("-")]
    in_place = program in _EDITORS and any(re.match(r"-\w*i|--in-place", word) for word in words[1:])
    if program in _CHANGERS or in_place or (program == "git" and not _GIT_CHANGERS.isdisjoint(arguments[:1])):
        return [*redirected, *arguments]
    if program in _COPIERS:
        return [*redirected, *arguments[-1:]]
    return [
        *redirected,
        *(word.removeprefix("of=") for word in arguments if program == "dd" and word.startswith("of=")),
    ]
