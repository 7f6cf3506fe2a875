PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test check browser bench docs lock clean

help: ## show this help
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; name one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

setup: $(READY) ## make the virtual environment .venv with everything in it

demo: $(READY) ## the main job on the embedded model: tools, an error to get over, questions about data
	$(BIN)/python examples/demo.py

test: $(READY) ## lint, types, floors and all tests, the real embedded model included
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory browser
	$(BIN)/opposable models pull
	$(BIN)/python -m pytest

check: $(READY) ## lint, format, types and floors, without tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

browser: $(READY) ## have a Chromium for browser_navigator: the system's, Debian's (as root), or Playwright's
	@for name in chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable; do \
	  command -v $$name >/dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get -qq update && \
	  apt-get -qq install -y --no-install-recommends chromium-headless-shell >/dev/null; then exit 0; fi; \
	timeout 120 $(BIN)/playwright install chromium-headless-shell || echo "No Chromium can be had here: the tests of browser_navigator are left out."

bench: $(READY) ## measure the project's own speed
	$(BIN)/python benchmarks/run.py

docs: $(READY) ## run every code block of README and docs
	$(BIN)/python -m pytest tests/test_docs.py

lock: ## resolve the pinned requirements anew (needs uv)
	uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --upgrade -q -o requirements.lock --custom-compile-command "make lock"

clean: ## remove the virtual environment and caches (not the fetched model)
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .demo dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
