# The one entry to everything: `make demo` and `make test` work on a machine that has only Python (3.11 or newer) and make.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
export OMP_WAIT_POLICY ?= PASSIVE

.PHONY: help setup demo test test-slow check format bench docs journeys pythons release-check clean constraints

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

$(VENV)/.core: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "askalike needs Python 3.11 or newer, this is " + sys.version.split()[0] + "; say make PYTHON=/path/to/python")'
	@echo "Setting up $(VENV) with what searching needs ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --constraint constraints.txt --editable .
	@touch $@

setup: $(VENV)/.ready  ## make .venv with everything that development needs, in exact versions

$(VENV)/.ready: $(VENV)/.core
	$(PIP) --constraint constraints.txt pip
	$(PIP) --constraint constraints.txt --build-constraint constraints.txt --editable . --group dev
	$(BIN)/python -m compileall -q --workers 0 $(VENV)/lib > /dev/null || true  # on all cores, where pip takes one
	@touch $@

demo: $(VENV)/.core  ## index the bundled forum and answer three questions
	@$(BIN)/askalike demo

test: setup  ## run the tests that a contributor runs, and the examples in docstrings
	$(BIN)/python -m pytest tests src/askalike --doctest-modules -m "not slow" --numprocesses auto --dist loadgroup

test-slow: setup  ## run the rest: kills, databases, engines, the page in Chromium, journeys, longer trainings
	$(BIN)/python -m pytest tests -m slow --numprocesses auto --dist loadgroup --no-loadscope-reorder

check: setup  ## lint, format, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/zizmor --offline --quiet .github

format: setup  ## put the code into its format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/.bench: $(VENV)/.ready
	$(PIP) --constraint constraints.txt --group bench
	@touch $@

bench: $(VENV)/.bench  ## measure on the real data sets; writes results/ and the tables in the documents
	$(BIN)/python -m benchmarks

$(VENV)/.docs: $(VENV)/.core
	$(PIP) --constraint constraints.txt pip
	$(PIP) --constraint constraints.txt --editable ".[serve]" --group docs
	@touch $@

docs: $(VENV)/.docs  ## build the documentation, with its references, into build/docs; a warning is an error
	$(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet docs build/docs

journeys: setup  ## play five people from a bare folder to their goals by the documents alone
	$(BIN)/python -m tools.journeys

pythons:  ## install the core with every Python from 3.11 on that is here, and run the demonstration
	tools/journeys/pythons.sh

$(VENV)/.release: $(VENV)/.core
	$(PIP) --constraint constraints.txt pip
	$(PIP) --constraint constraints.txt --group release
	@touch $@

release-check: $(VENV)/.release  ## build wheel and sdist twice, compare, inspect, install, run the demonstration
	tools/release_check.sh $(BIN)/python

constraints:  ## write constraints.txt anew from what is installed
	$(BIN)/python -m pip freeze --exclude-editable --all | sed -E 's|^torch==([0-9.]+).*|torch==\1|' > constraints.txt

clean:  ## remove what was built
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache homenet.forum
