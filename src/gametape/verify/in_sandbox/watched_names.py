"""Paths and commands that no product has a use for while it is tested. The audit hook reports these and no others, so
that harmless events cannot use up its budget; rules over code look for the same ones."""

import re

GIT_HISTORY_COMMAND = re.compile(
    r"\bgit\b.*?\b(cat-file|reflog|fsck|stash|unpack-objects|verify-pack|rev-list|ls-tree|archive|blame|"
    r"bisect|cherry-pick|whatchanged|format-patch|bundle|worktree|lost-found)\b"
    r"|\bgit\b.*?\b(show|checkout|restore|reset|grep|diff|log)\b.*?(\bHEAD[~^@]|@\{|\bORIG_HEAD|--all\b|"
    r"\b[0-9a-f]{7,40}\b|\bFETCH_HEAD|\s-p\b|--patch|-S\s*\S|-G\s*\S|--source|\btags/|\borigin/|\bHEAD:|"
    r"--follow)"
)
TOOL_CACHE_PATH = re.compile(
    r"(^|/)\.(mypy_cache|pytest_cache|ruff_cache|hypothesis|coverage|tox|nox|pytype|pyre|ipynb_checkpoints)(/|$|\.)"
)
GIT_STORE_PATH = re.compile(
    r"(^|/)\.git/(objects|logs|packed-refs|refs|ORIG_HEAD|index|lost-found|stash|FETCH_HEAD)|\.(pack|idx)$"
)
PACKAGE_CACHE_PATH = re.compile(
    r"\.cache/(pip|uv|pypoetry|pre-commit)|(^|/)(pip|uv)[-_]cache|Library/Caches/pip|\.local/lib/python"
)
REPORT_FILE = re.compile(
    r"(^|/)(reward\.(txt|json)|junit[\w.-]*\.xml|verdict\.json|test[-_]?(results?|report)[\w-]*\.(xml|"
    r"json)|pytest[\w-]*\.(xml|json)|lastfailed|nodeids)$|(^|/)logs/verifier(/|$)"
)
STARTED_LATER_PATH = re.compile(
    r"(^|/)\.(bashrc|bash_profile|profile|zshrc|zshenv|bash_login|bash_logout|inputrc|pythonrc(\.py)?)$|"
    r"(^|/)(etc/)?cron(tab|\.d|\.daily)(/|$)|var/spool/cron|\.git/hooks/|systemd/(system|user)/|"
    r"\.config/autostart"
)
PROCESS_SECRET_PATH = re.compile(r"^/proc/\S+/(environ|mem|maps|root|cwd|pagemap|auxv)$|^/proc/1/")
BYTE_CODE_FILE = re.compile(r"\.pyc$")
REPORTED_KINDS = frozenset({
    "open", "os.listdir", "os.scandir", "sqlite3.connect", "subprocess.Popen", "os.system", "os.exec",
    "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "import", "patched", "worker lost",
})  # fmt: skip
"""The kinds of events that a process reports about itself."""
