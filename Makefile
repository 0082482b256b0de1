# Everything a newcomer needs. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
CORES = $(shell $(PYTHON) -c 'import os; print(os.cpu_count())')
QUICK = HYPOTHESIS_PROFILE=quick $(BIN)/pytest -q --dist worksteal -n $(CORES) -m 'not slow'
# One process more than there are cores: some tests wait for servers and browsers.
PYTEST = $(BIN)/pytest -q --dist worksteal -n $$(($(CORES) + 1))

# Tests start many processes, which start sooner with compiled bytecode.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install lock demo docs check test coverage browser lint format mutants benchmark release wheels clean

help: ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

install: $(INSTALLED) ## create .venv and install ebrank with its development tools

$(INSTALLED): pyproject.toml requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "ebrank needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]' \
	  --constraint requirements-dev.lock
	@touch $@

lock: ## write the versions in .venv to requirements-dev.lock
	$(BIN)/python -m pip freeze --exclude-editable > requirements-dev.lock

demo: $(INSTALLED) ## the paper in small, in a minute: all rankers on the embedded dataset, and a report
	@echo 'All rankers on a fifth of the embedded dataset, five trials: about a minute on two cores.'
	@$(BIN)/ebrank reproduce --scale 0.2 --trials 5 --out reproduction/demo \
	  --only table1,table2,table3,time,toy,waiting $(OPTIONS)
	@echo
	@echo 'What to try next:'
	@echo '  $(BIN)/ebrank reproduce                       the whole of it, every table and figure: seven minutes'
	@echo '  $(BIN)/ebrank reproduce --dataset MQ2008 --data-dir FOLDER       on data of your own'
	@echo '  $(BIN)/ebrank simulate --dataset mq2007-like --scale 0.1 --ranker ebrank:epsilon=5'
	@echo '  $(BIN)/python examples/new_item.py            watch new items being found'
	@echo '  $(BIN)/ebrank serve --demo                    the service, with simulated users and a dashboard'

docs: $(INSTALLED) ## the documentation as a site, in site/; every link is checked
	$(BIN)/python tools/docs.py
	@echo 'Open site/index.html'

check: $(INSTALLED) lint ## in a minute: lint, types and the quick tests
	$(QUICK)

test: $(INSTALLED) browser lint ## everything CI checks: lint, format, types, imports, tests, doctests
	$(PYTEST)

coverage: $(INSTALLED) browser ## which lines and branches the tests reach; fails below 97 %
	$(PYTEST) --cov --cov-report=term:skip-covered --cov-report=html --cov-fail-under=97

browser: ## Chromium and its driver, which the tests of pages need
	@sh tools/install-browser

lint: $(INSTALLED) ## ruff, mypy --strict, the import contracts, and words to avoid
	$(BIN)/python tools/words.py
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(INSTALLED) ## let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

mutants: $(INSTALLED) ## how many small changes of the code the tests notice
	$(BIN)/python tools/mutants.py

benchmark: $(INSTALLED) ## the figures of benchmarks/README.md, as ratios
	$(BIN)/python -m benchmarks

release: $(INSTALLED) ## build wheel and sdist, and try them in empty environments
	$(BIN)/python tools/release.py

wheels: $(INSTALLED) ## ebrank and all it needs to serve, as wheels for deploy/Containerfile, in dist/wheels
	rm -rf dist/wheels
	$(BIN)/python -m build --wheel --outdir dist/wheels
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --dest dist/wheels --only-binary=:all: \
	  --python-version 3.12 --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
	  --find-links dist/wheels 'ebrank[service]'

clean: ## remove the environment and every cache
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist site htmlcov .coverage*
