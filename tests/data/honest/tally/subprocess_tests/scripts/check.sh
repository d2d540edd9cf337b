#!/bin/sh
set -e
python -m pytest -q
python tally.py tests/data/pets.csv kind
