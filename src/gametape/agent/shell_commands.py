"""What a shell command would run, as far as its text tells.

Separators, quotes, assignments and the usual prefixes (`sudo`, `env`, `nohup` ...) are seen through, and so are
`bash -c` and `eval`. It is a best effort: a shell can hide a command in ways that only running it shows, so whatever
matters is looked at afterwards too.
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
    found: list[list[str]] = []
    for words in _split(_without_heredocs(text)):
        bare = _without_prefixes(words)
        if bare:
            found.append(bare)
            found += _inner(bare, depth)
    for match in _SUBSTITUTION.finditer(text):
        found += split_commands(match[1] or match[2] or "", depth + 1)
    return found


def _inner(words: list[str], depth: int) -> list[list[str]]:
    """What a command that runs a command would run."""
    program = words[0].rpartition("/")[2]
    if program == "eval":
        return split_commands(" ".join(words[1:]), depth + 1)
    if program in _SHELLS:
        flags = (index for index, word in enumerate(words[:-1]) if re.fullmatch(r"-[a-z]*c[a-z]*", word))
        return [one for index in flags for one in split_commands(words[index + 1], depth + 1)]
    return []


def _without_heredocs(text: str) -> str:
    """A here-document is text for the command before it, unless that is a shell. Takes time in step with the text."""
    lines = text.split("\n")
    ends: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        ends.setdefault(line.lstrip(" \t"), []).append(number)
    kept: list[str] = []
    here = 0
    while here < len(lines):
        line = lines[here]
        heredoc = _HEREDOC.search(line)
        later = ends.get(heredoc[2], []) if heredoc else []
        at = bisect.bisect_right(later, here)
        if heredoc is None or at == len(later):
            kept.append(line)
            here += 1
            continue
        end = later[at]
        kept.append(f"{line[: heredoc.start()]} {line[heredoc.end() :]}")
        words = re.split(r"[;&|]", line[: heredoc.start()])[-1].split()
        if any(word.rpartition("/")[2] in _SHELLS for word in words):
            kept += lines[here + 1 : end]
        kept.append("")
        here = end + 1
    return "\n".join(kept)


def _split(text: str) -> list[list[str]]:
    """At separators that are not quoted. What cannot be split as a shell would is split at white space."""
    lexer = shlex.shlex(text.replace("\\\n", " "), posix=True, punctuation_chars=";&|(){}<>\n")
    lexer.whitespace, lexer.commenters = " \t\r", ""
    try:
        words = list(lexer)
    except ValueError:
        words = re.sub(r"([;&|()\n])", r" \1 ", text).replace('"', "").replace("'", "").split(" ")
    found: list[list[str]] = [[]]
    for word in words:
        if word in _SEPARATORS or (word and set(word) <= set(";&|(){}\n")):
            found.append([])
        elif word:
            found[-1].append(word)
    return found


def _without_prefixes(words: list[str]) -> list[str]:
    """From the program's name on. Redirections stay: they name files."""
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
    """Files that a command would write, remove or change, as far as its words tell: where output is sent, and what
    the usual programs are given."""
    sent = [
        after
        for word, after in itertools.pairwise(words)
        if ">" in word and _REDIRECTION.match(word) and not after.isdigit()
    ]
    program, given = words[0].rpartition("/")[2], [word for word in words[1:] if not word.startswith("-")]
    in_place = program in _EDITORS and any(re.match(r"-\w*i|--in-place", word) for word in words[1:])
    if program in _CHANGERS or in_place or (program == "git" and not _GIT_CHANGERS.isdisjoint(given[:1])):
        return [*sent, *given]
    if program in _COPIERS:
        return [*sent, *given[-1:]]
    return [*sent, *(word.removeprefix("of=") for word in given if program == "dd" and word.startswith("of="))]
