#!/bin/sh
# Ray for the slow tests of the cluster, in a directory of its own under the user's cache that goes on PYTHONPATH: the
# other targets do without it. Its last line on stdout is the directory; GAMETAPE_RAY names another one.
set -eu
cd "$(dirname "$0")/.."
place=${GAMETAPE_RAY:-${XDG_CACHE_HOME:-$HOME/.cache}/gametape/ray}
if ! [ -e "$place/.ready" ]; then
    echo "setup: installing ray into $place" >&2
    # What else it needs is in .venv already.
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt \
        --target "$place" ray msgpack >&2
    touch "$place/.ready"
fi
echo "$place"
