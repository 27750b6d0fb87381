# The targets a newcomer needs. Each sets up what it needs in .venv first.
PYTHON ?= python3
ARGS ?=
BIN := .venv/bin

.PHONY: demo test check bench docs lock clean setup

demo: setup  ## catalogue, typists, models, table, report, then the search box on 127.0.0.1:8000
	$(BIN)/telic demo $(ARGS)

test: setup  ## every test; BLAS's threads would fight with the workers for the cores
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(ARGS)

check: setup  ## formatting, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: setup .venv-bench/.ready  ## time the solvers against their rivals; ARGS="auc" or "privacy" for those products
	.venv-bench/bin/python -m benchmarks $(ARGS)

.venv-bench/.ready: requirements.lock benchmarks/requirements-bench.txt
	rm -rf .venv-bench && $(PYTHON) -m venv .venv-bench
	$(BIN)/uv pip install --quiet --python .venv-bench/bin/python --require-hashes -r requirements.lock
	$(BIN)/uv pip install --quiet --python .venv-bench/bin/python -r benchmarks/requirements-bench.txt
	$(BIN)/uv pip install --quiet --python .venv-bench/bin/python --no-deps --no-build-isolation --offline -e .
	touch $@

docs: setup  ## the documentation site, in docs/_build/html
	$(BIN)/sphinx-build -W -q -b html docs docs/_build/html

lock: setup  ## choose versions anew (writes no registry addresses)
	$(BIN)/uv pip compile pyproject.toml --universal --generate-hashes --all-extras --group dev \
		--no-emit-package telic --no-header --quiet $(ARGS) --output-file requirements.lock

setup:
	@$(PYTHON) scripts/setup_env.py

clean:  ## remove everything that was built
	rm -rf .venv .venv-bench build dist docs/_build docs/gallery docs/api telic-demo .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
