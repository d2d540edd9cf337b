#!/bin/sh
# The weak grader: it believes a test process that the agent's code runs in. `gametape verify` is the strong one.
mkdir -p /logs/verifier
cd /app && cp -R /tests/suite/. . &&
    PYTHONPATH=/app python -B -m pytest -c /dev/null --rootdir=/app -q -p no:cacheprovider -p no:junitxml -o addopts= --continue-on-collection-errors -W ignore::pytest.PytestConfigWarning @/tests/ids.txt
if [ $? -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
