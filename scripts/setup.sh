#!/bin/sh
# setup.sh [base]: makes .venv from the pinned constraints, and sees to it that bubblewrap and ripgrep are there.
# `base` leaves out torch and the tools of the tests: all that runs agents against a model server.
# A torch that the Python has already is used, where it is a supported one: pip then brings no other, and `base` has what
# trains besides.
# Exits 3 when the machine lacks something; the last line is then the one command to type.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
if [ "${1:-}" = base ]; then
    extras='' mark=installed target=install what="gametape without torch (a minute or two)"
else
    extras='[dev,train]' mark=ready target=setup what="gametape with torch and the tools of its tests (some minutes)"
fi

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
began=$(date +%s)
if [ ! -x .venv/bin/python ]; then
    echo "setup: making .venv with $("$python" --version)" >&2
    "$python" -m venv .venv
fi
mkdir -p build
cp constraints.txt build/constraints.txt
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
if [ -d "$site/torch" ]; then
    echo "setup: .venv has a torch of its own, which stays" >&2
elif torch=$("$python" scripts/machine_torch.py build/machine-torch 2>build/machine-torch.txt); then
    grep -v '^torch==' constraints.txt >build/constraints.txt
    echo "torch==$torch" >>build/constraints.txt
    echo "$(pwd)/build/machine-torch" >"$site/machine-torch.pth"
    [ -n "$extras" ] || extras='[train]' what="gametape (a minute or two)"
    echo "setup: using torch $torch of $(command -v "$python")" >&2
else
    rm -f "$site/machine-torch.pth"
    echo "setup: no torch of $(command -v "$python") is used: $(tail -n 1 build/machine-torch.txt)" >&2
fi
echo "setup: installing $what" >&2
# Every package is named as it comes; the whole of what pip says is in build/setup.log.
{
    .venv/bin/python -m pip install --disable-pip-version-check --progress-bar off -c build/constraints.txt -e ".$extras" 2>&1 ||
        echo "setup-failed"
} | tee build/setup.log | sed -nu \
    -e 's/^  *Downloading \(.*\)$/setup:   \1/p' \
    -e 's/^Processing .*\/\([^/]*\.whl\)$/setup:   \1/p' \
    -e 's/^Installing collected packages:.*$/setup: unpacking them/p' >&2
if grep -q '^setup-failed$' build/setup.log; then
    grep -i '^error' build/setup.log >&2 || tail -n 5 build/setup.log >&2
    echo "setup: pip could not install everything; see build/setup.log, then type this again:" >&2
    echo "make $target" >&2
    exit 3
fi
touch ".venv/.$mark"
echo "setup: ready in $(($(date +%s) - began)) s; the command is .venv/bin/gametape" >&2
