PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Container images often forbid Python to cache bytecode. Then each process compiles all sources again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup demo test weights programs check console browser mariadb bench soak docs lock clean

help: ## show this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is required. Name one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@echo "Installing the dependencies into $(VENV). This takes some minutes."
	$(BIN)/python -m pip install --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

setup: $(READY) ## create the virtual environment .venv with all dependencies

demo: $(READY) ## run six tasks on the embedded model: tools, an error to recover from, questions about data
	$(BIN)/python examples/demo.py

test: $(READY) ## check and run all tests, including those on the embedded model
	@$(MAKE) --no-print-directory -j 3 check weights programs
	$(BIN)/python -m pytest -n logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder -m "not real_model"
	$(BIN)/python -m pytest -m real_model

weights: $(READY)
	$(BIN)/opposable models pull

programs:
	@$(MAKE) --no-print-directory browser
	@$(MAKE) --no-print-directory mariadb

check: $(READY) ## lint, format, types, layers and vocabulary, without tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/check_vocabulary.py

console: $(READY) ## check and build the web console (needs Node 20)
	$(BIN)/python scripts/write_openapi.py console/openapi.json
	cd console && npm install --no-save && npm run types && npm run check && npm run build
	$(BIN)/python scripts/hash_console.py --write

browser: $(READY) ## install Chromium for browser_navigator and the tests of the console
	@for name in chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable; do \
	  command -v $$name >/dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get -qq update && \
	  apt-get -qq install -y --no-install-recommends chromium-headless-shell >/dev/null; then exit 0; fi; \
	timeout 120 $(BIN)/playwright install chromium-headless-shell || echo "Chromium cannot be installed here: the tests that need it are skipped."

mariadb: ## install the programs of MariaDB's server for the tests of MySQL databases
	@command -v mariadbd >/dev/null || [ -x /usr/sbin/mariadbd ] || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	  apt-get -qq update && apt-get -qq install -y --no-install-recommends mariadb-server-core >/dev/null; } || \
	  echo "MariaDB cannot be installed here: the tests that need it are skipped."

bench: $(READY) ## measure speed
	$(BIN)/python benchmarks/run.py

soak: $(READY) ## execute 1,000 durable runs while workers are killed and PostgreSQL restarts
	$(BIN)/python -m tests.durable.soak

docs: $(READY) ## run the code blocks of README and docs
	$(BIN)/python -m pytest tests/test_docs.py

lock: ## update the pinned requirements (needs uv)
	uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --upgrade -q -o requirements.lock --custom-compile-command "make lock"

clean: ## remove the virtual environment and caches (not the downloaded model)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .demo dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
