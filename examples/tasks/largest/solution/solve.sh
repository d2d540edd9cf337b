#!/bin/sh
# Apply the reference: its files go over the workspace, and what it removes goes away.
set -e
cd /app
if [ -d /solution/files ]; then cp -R /solution/files/. .; fi
if [ -f /solution/deleted.txt ]; then
    while IFS= read -r path; do rm -f -- "$path"; done < /solution/deleted.txt
fi
