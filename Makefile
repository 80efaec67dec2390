# make run    sets up .venv, starts SemSim Studio on the built-in study
# make test   sets up .venv, runs lint, types and all tests
PYTHON ?= python3
HOST   ?= 127.0.0.1
PORT   ?= 7860
ARGS   ?=
BIN     = .venv/bin

.PHONY: run test lint types demo clean help

help:
	@grep -E '^# make' Makefile | sed 's/^# //'

.venv/run.stamp: requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@echo "Installing what is needed; the first time takes some minutes."
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -r requirements.txt
	touch $@

.venv/test.stamp: requirements-dev.txt .venv/run.stamp
	$(BIN)/python -m pip install --quiet -r requirements-dev.txt
	touch $@

run: .venv/run.stamp
	$(BIN)/python app.py --host $(HOST) --port $(PORT) $(ARGS)

lint: .venv/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/test.stamp
	$(BIN)/mypy

test: lint types
	$(BIN)/python -m pytest -n auto --dist loadfile $(ARGS)

demo: .venv/run.stamp
	$(BIN)/python -m semsim demo build

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache
