# The targets a newcomer needs. Each sets up what it needs in $(VENV) first.
# Another Python beside the first: make test VENV=.venv-3.13 PYTHON=python3.13
PYTHON ?= python3
VENV ?= .venv
ARGS ?=
BIN := $(VENV)/bin
# BLAS's threads would fight with the workers for the cores; bytecode is kept wherever this runs.
PYTEST := OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest
# The rooms whose results could depend on the processor's floating-point kernels.
NUMERIC := auc choice completion evaluate hin optim privacy specialty

.PHONY: demo test test-numeric axe soak check bench page docs dist lock clean setup

demo: setup  ## catalogue, typists, models, table, report, then the search box on 127.0.0.1:8000
	$(BIN)/telic demo $(ARGS)

test: setup  ## every test
	$(PYTEST) $(ARGS)

test-numeric: setup  ## the numeric rooms, as other processors would compute: OPENBLAS_CORETYPE=Haswell make test-numeric
	$(PYTEST) $(addprefix tests/,$(NUMERIC)) $(ARGS)

axe: node_modules/axe-core/axe.min.js  ## what the pages' accessibility is tested with, by npm

node_modules/axe-core/axe.min.js:
	npm install --no-save --no-package-lock --no-audit --no-fund --silent axe-core@4.10.3

soak: setup  ## the service under faults and attacks, for minutes; writes docs/measured/service-faults.md
	$(BIN)/python -m benchmarks soak --write $(ARGS)

check: setup  ## formatting, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: setup .venv-bench/.ready  ## a page of measurements beside rivals: make bench ARGS="optim --write"; ARGS=--help names them
	.venv-bench/bin/python -m benchmarks $(ARGS)

.venv-bench/.ready: requirements.lock benchmarks/requirements-bench.txt benchmarks/requirements-bench-overrides.txt
	rm -rf .venv-bench && $(PYTHON) -m venv .venv-bench
	$(BIN)/uv pip install --quiet --compile-bytecode --python .venv-bench/bin/python --require-hashes -r requirements.lock
	$(BIN)/uv pip install --quiet --compile-bytecode --python .venv-bench/bin/python -r benchmarks/requirements-bench.txt --override benchmarks/requirements-bench-overrides.txt
	$(BIN)/uv pip install --quiet --python .venv-bench/bin/python --no-deps --no-build-isolation --offline -e .
	touch $@

PAGE = docs/measured/$(if $(filter all,$(firstword $(ARGS))),reproduced,results-$(firstword $(ARGS)))$(patsubst --part=%,-%,$(filter --part=%,$(subst --part ,--part=,$(ARGS))))

page: setup  ## write a page of a study's in docs/measured anew, or the page of all: make page ARGS=chapter-4
	rm -rf $(PAGE) $(PAGE).md
	$(BIN)/telic study $(ARGS) --out $(PAGE).md

docs: setup  ## the documentation site, in docs/_build/html
	$(BIN)/sphinx-build -W -q -b html docs docs/_build/html

dist: setup  ## wheel, sdist and bill of materials in dist: the same bytes from the same commit
	rm -rf dist && $(BIN)/hatchling build -d dist && $(BIN)/python scripts/dependencies.py --bill dist

lock: setup  ## choose versions anew (writes no registry addresses)
	$(BIN)/uv pip compile pyproject.toml --universal --generate-hashes --all-extras --group dev \
		--no-emit-package telic --no-header --quiet $(ARGS) --output-file requirements.lock

setup:
	@$(PYTHON) scripts/setup_env.py $(VENV)

clean:  ## remove everything that was built
	rm -rf .venv .venv-* node_modules build dist docs/_build docs/gallery docs/api telic-demo .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
