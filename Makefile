# The two commands of the README are `make demo` and `make test`. Each sets up what it needs:
# a Python of at least 3.11 is all a fresh machine must have.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint dev lock perf clean

help:
	@echo "make demo      run the graph on embedded traces and print the leaderboard"
	@echo "make test      the tests that need no service (about ten minutes)"
	@echo "make test-all  these, then the slow ones and those that start servers"
	@echo "make lint      formatting, lint, types, layers, contracts"
	@echo "make dev       open the graph in Dagster: http://127.0.0.1:3000"
	@echo "make lock      pin the newest versions again, with hashes"
	@echo "make perf      print the benchmarks of this project itself"
	@echo "make clean     remove the environment and the demo's data"

# uv is faster where there is one; pip does the same from the same hashes.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "This needs Python 3.11 or newer; '$(PYTHON)' is not. Name one: make PYTHON=python3.12"; \
	  exit 1; }
	@if command -v uv >/dev/null 2>&1; then \
	  echo "Setting up $(VENV) with uv ..."; \
	  uv venv --quiet --allow-existing --python $(PYTHON) $(VENV) && \
	  uv pip sync --quiet --python $(BIN)/python --require-hashes --compile-bytecode \
	    requirements.lock && \
	  uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e . ; \
	else \
	  echo "Setting up $(VENV) with pip (a few minutes the first time) ..."; \
	  $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes \
	    -r requirements.lock && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
	    --no-build-isolation -e . ; \
	fi
	@touch $(READY)

demo: $(READY)
	@$(BIN)/bench demo

test: $(READY)
	@$(BIN)/pytest -q -n 2 --dist loadscope -m "not services and not slow"

test-all: test
	@$(BIN)/pytest -q -m "services or slow"

lint: $(READY)
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/lint-imports --no-cache >/dev/null || $(BIN)/lint-imports --no-cache
	@$(BIN)/bench lint contracts examples/golden/fixtures

dev: $(READY)
	@DAGSTER_HOME="$(CURDIR)" $(BIN)/dagster dev

lock:
	@uv pip compile --quiet --universal --generate-hashes --no-strip-extras --extra dev \
	  --python-version 3.11 --no-emit-index-url --custom-compile-command "make lock" \
	  --upgrade pyproject.toml -o requirements.lock

perf: $(READY)
	@for script in perf/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) data
