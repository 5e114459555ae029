.DEFAULT_GOAL := help
.PHONY: help run test test-slow test-nojit check bench lock
PYTHON ?= python3
DATA ?= ../shared/data
PY := .venv/bin/python

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

.venv/.installed: requirements-dev.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("frugal needs Python 3.11 or later: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv .venv
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

run: .venv/.installed ## the service on 127.0.0.1:8000 with the heart example, its state in ./var
	.venv/bin/frugal migrate --example
	.venv/bin/frugal serve

test: .venv/.installed ## the tests (sets up .venv on first use)
	$(PY) -m pytest

test-slow: .venv/.installed ## the long checks too
	HYPOTHESIS_PROFILE=long $(PY) -m pytest -m 'slow or not slow' -o timeout=3000

test-nojit: .venv/.installed ## the kernels' tests once more, as plain Python
	NUMBA_DISABLE_JIT=1 $(PY) -m pytest tests/models

check: .venv/.installed ## ruff, mypy, import-linter
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

bench: .venv/.installed ## every benchmark, each beside something outside (DATA=folder of tables)
	$(PY) benchmarks/decide.py
	$(PY) benchmarks/budget_forest.py --data $(DATA)
	$(PY) benchmarks/steps.py
	$(PY) benchmarks/reading.py --data $(DATA)/covertype.csv.gz

lock: .venv/.installed ## resolve the dependencies again
	.venv/bin/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header pyproject.toml -o requirements.lock
	.venv/bin/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock
