#!/bin/sh
# Makes .venv from the pinned constraints, and sees to it that bubblewrap and ripgrep are there.
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
missing=
command -v bwrap >/dev/null 2>&1 || missing="$missing bubblewrap"
command -v rg >/dev/null 2>&1 || missing="$missing ripgrep"
for package in $missing; do
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "setup: installing $package" >&2
        { apt-get install -y "$package" || { apt-get update && apt-get install -y "$package"; }; } >/dev/null 2>&1 || {
            echo "setup: $package could not be installed; install it with:" >&2
            echo "apt-get update && apt-get install -y$missing" >&2
            exit 3
        }
    else
        echo "setup:$missing missing, and only root may install that; type:" >&2
        echo "sudo apt-get install -y$missing" >&2
        exit 3
    fi
done
[ -x .venv/bin/python ] || "$python" -m venv .venv
.venv/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,train]'
touch .venv/.ready
