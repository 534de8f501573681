# The commands of CONTRIBUTING.md. `make PYTHON=python3.12 setup` chooses another Python,
# `make BIN=/path/bin lint` an environment that is there.
PYTHON ?= python3
BIN := .venv/bin

# Folders whose tests take about a minute together, on two cores.
FAST := tests/unit/events tests/unit/inputs tests/unit/findings tests/unit/comparison tests/unit/api

.PHONY: setup lint types test test-fast docs bench

setup:
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --require-hashes --no-deps -r requirements-fleet.lock

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/pip install --quiet --require-hashes -r requirements-types.lock
	$(BIN)/python -m pytest -n 0 -m slow tests/unit/api/test_types.py

test:
	bash .ci/run

test-fast:
	$(BIN)/python -m pytest $(FAST)

docs:
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/pip install --quiet --require-hashes -r requirements-docs.lock
	.venv-docs/bin/python -m sphinx --fail-on-warning --nitpicky -c docs . build/html

bench:
	$(BIN)/python -m tests.bench
