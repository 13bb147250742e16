# `make test` and `make demo` work in a fresh clone with Python 3.11 or newer, make and a package index.
# PYTHON=... chooses the interpreter, WORKERS=... the number of test processes.
.DEFAULT_GOAL := help
.PHONY: help demo test lint types gates unit matrix peers mutants bench torture fuzz fuzz-shell architecture models-view format clean dev run

PYTHON ?=
export PYTHON
BIN := .venv/bin

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

demo: run ## watch the agent fix a bug, with a scripted model: no network, no key
	@$(BIN)/python -m bradawl demo

test: dev ## everything that must hold: format, lint, types, imports, dependencies, gates, tests
	@scripts/check format lint types imports dependencies gates unit

lint: dev ## format, lint, who imports whom, unused dependencies
	@scripts/check format lint imports dependencies

types: dev ## basedpyright
	@scripts/check types

gates: dev ## rules about the code itself
	@scripts/check gates

unit: dev ## all tests but the gates
	@scripts/check unit

peers: dev ## compare with programs and libraries nobody here wrote, in an environment of their own
	@scripts/peers

mutants: dev ## change the modules that decide in small ways, list the changes that no test notices; an hour
	@scripts/mutants

bench: dev ## measure start, steps and memory beside a bare loop
	@$(BIN)/python benchmarks/run.py

matrix: dev ## demo and tests as root and as another user, with and without a sandbox, on every Python; an hour or more
	@scripts/matrix $(CELLS)

torture: dev ## property tests, 50 times as many cases
	@HYPOTHESIS_PROFILE=torture $(BIN)/python -m pytest -n 2 -o timeout=1800 --ignore tests/peers tests

fuzz: dev ## random streams into the wire decoders, random lines at bash, random edits
	@HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -n 2 -o timeout=1800 tests/wire tests/unit/test_shell_effects_bash.py tests/unit/test_edit_properties.py

fuzz-shell: dev ## a minute of random lines, what is predicted for them against what bash does; SEED=... repeats a run
	@$(BIN)/python tests/fuzz_shell.py 60 $(SEED)

architecture: dev ## rewrite the tables and the picture of docs/architecture.md from the code
	@$(BIN)/python scripts/architecture.py

models-view: dev ## rewrite docs/models-view.md, all that a model sees in a run
	@$(BIN)/python scripts/models_view.py

format: dev ## rewrite the code in house style
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean: ## remove everything that was made
	rm -rf .venv .peers .pytest_cache .ruff_cache .hypothesis .import_linter_cache .coverage build dist
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

dev:
	@scripts/bootstrap dev

run:
	@scripts/bootstrap run
