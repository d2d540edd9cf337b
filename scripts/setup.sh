#!/bin/sh
# Makes .venv from the pinned constraints, and sees to it that bubblewrap is there.
# Exits 3 when the machine lacks something; the last line is then the one command to type.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

if ! command -v "$python" >/dev/null 2>&1 || ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "setup: Python 3.11 or newer is needed; name one with PYTHON=, or:" >&2
    echo "apt-get install -y python3 python3-venv" >&2
    exit 3
fi
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    echo "setup: this Python has no venv module; install it with:" >&2
    echo "apt-get install -y python3-venv" >&2
    exit 3
fi
if ! command -v bwrap >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "setup: installing bubblewrap" >&2
        { apt-get install -y bubblewrap || { apt-get update && apt-get install -y bubblewrap; }; } >/dev/null 2>&1 || {
            echo "setup: bubblewrap could not be installed; install it with:" >&2
            echo "apt-get update && apt-get install -y bubblewrap" >&2
            exit 3
        }
    else
        echo "setup: bubblewrap is missing and only root may install it; type:" >&2
        echo "sudo apt-get install -y bubblewrap" >&2
        exit 3
    fi
fi
[ -x .venv/bin/python ] || "$python" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
touch .venv/.ready
