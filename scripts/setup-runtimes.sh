#!/bin/sh
# The OCI runtimes that the slow suites use. Without them those tests are skipped and say so.
set -eu
for runtime in runc crun; do
    if ! command -v "$runtime" >/dev/null 2>&1 && ! [ -x "/usr/sbin/$runtime" ]; then
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
            echo "setup: installing $runtime" >&2
            apt-get install -y "$runtime" >/dev/null 2>&1 || echo "setup: $runtime could not be installed" >&2
        else
            echo "setup: $runtime is missing; for its tests: sudo apt-get install -y $runtime" >&2
        fi
    fi
done
