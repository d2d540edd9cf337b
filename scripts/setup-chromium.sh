#!/bin/sh
# Chromium and its driver, for the slow tests of the studio. Without them those tests are skipped and say so.
set -eu
if ! command -v chromium >/dev/null 2>&1 || ! command -v chromedriver >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "setup: installing chromium and chromium-driver" >&2
        { apt-get install -y chromium chromium-driver || { apt-get update && apt-get install -y chromium chromium-driver; }; } \
            >/dev/null 2>&1 || echo "setup: chromium could not be installed" >&2
    else
        echo "setup: chromium is missing; for its tests: sudo apt-get install -y chromium chromium-driver" >&2
    fi
fi
