.DEFAULT_GOAL := help
.PHONY: help run example env up down roll test test-slow test-nojit test-compose test-typescript check docs bench lock
PYTHON ?= python3
DATA ?= ../shared/data
PY := .venv/bin/python
DOCKER ?= docker
COMPOSE ?= $(shell $(DOCKER) compose version >/dev/null 2>&1 && echo '$(DOCKER) compose' || echo docker-compose)
UP ?= up -d --build

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

.venv/.installed: requirements-dev.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("frugal needs Python 3.11 or later: make PYTHON=python3.12 ...") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv .venv
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.venv-run/.installed: requirements.lock requirements-build.lock pyproject.toml deploy/install.py
	@$(PYTHON) deploy/install.py .venv-run
	@touch $@

.venv/.bench: requirements-bench.lock .venv/.installed
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-bench.lock
	@touch $@

run: .venv-run/.installed ## the service on 127.0.0.1:8000 with the heart example, its state in ./var
	@PYTHONDONTWRITEBYTECODE= .venv-run/bin/frugal serve --example # the first start compiles what it imports, and keeps it

example: .venv/.installed ## train the heart example's model anew
	$(PY) -m examples.heart_model

env: ## .env with fresh secrets for the containers; one that is there stays
	@deploy/env

up: env ## the service in containers on 127.0.0.1:8000: proxy, servers, PostgreSQL
	@chmod -R a+rX deploy/proxy
	$(COMPOSE) $(UP) || { $(COMPOSE) logs --tail 20 migrate api proxy; exit 1; }
	@url=http://$$($(COMPOSE) port proxy 8000); for _ in $$(seq 60); do curl -fs $$url/readyz >/dev/null && echo "$$url is ready" && exit; sleep 1; done; \
	  $(COMPOSE) logs --tail 20 api proxy; echo "$$url is not ready" >&2; exit 1

down: ## stop the containers; the data stays in their volume
	$(COMPOSE) down

roll: ## replace the servers in their containers one by one, with no step lost
	COMPOSE='$(COMPOSE)' DOCKER='$(DOCKER)' deploy/roll

test: .venv/.installed ## the tests (sets up .venv on first use)
	$(PY) -m pytest -n 3 --dist loadfile # two processors: a third of the time is spent waiting

test-slow: .venv/.installed ## the long checks too
	HYPOTHESIS_PROFILE=long $(PY) -m pytest -n 3 --dist loadfile -m 'slow or not slow' -o timeout=3000

test-nojit: .venv/.installed ## the kernels' tests once more, as plain Python
	NUMBA_DISABLE_JIT=1 $(PY) -m pytest tests/models

test-compose: .venv/.installed env ## the containers on a Docker engine: killed, restarted, scaled, put under hostile load
	COMPOSE='$(COMPOSE)' DOCKER='$(DOCKER)' UP='$(UP)' $(PY) -m tests.journeys.compose

test-typescript: .venv/.installed ## a TypeScript client made from our OpenAPI page holds a session (needs npm)
	$(PY) -m tests.journeys.typescript

check: .venv/.installed ## ruff, mypy, import-linter
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

docs: .venv/.installed ## the learners' tables in docs/learners.md, from their classes
	$(PY) -m frugal.models.learners.describing docs/learners.md

bench: .venv/.bench ## every benchmark, each beside something outside (DATA=folder of tables)
	$(PY) benchmarks/first_minute.py
	$(PY) benchmarks/decide.py
	$(PY) benchmarks/budget_forest.py --data $(DATA)
	$(PY) benchmarks/growing.py --data $(DATA)
	$(PY) benchmarks/sweep.py --data $(DATA)
	$(PY) benchmarks/calibration.py --data $(DATA)
	$(PY) benchmarks/memory.py --data $(DATA)
	$(PY) benchmarks/steps.py
	$(PY) benchmarks/pool.py
	$(PY) benchmarks/reading.py --data $(DATA)/covertype.csv.gz
	$(PY) benchmarks/training.py --data $(DATA)/covertype.csv.gz
	$(PY) benchmarks/boosting.py --data $(DATA)
	$(PY) benchmarks/peers/run.py --data $(DATA)
	$(PY) benchmarks/frontier.py --data $(DATA) --out var/frontier.jsonl --again # hours at first; rivals are kept, ours is fitted anew

lock: .venv/.installed ## resolve the dependencies again
	.venv/bin/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header --extra serve pyproject.toml -o requirements.lock
	.venv/bin/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header --extra serve --extra dev -c requirements.lock pyproject.toml -o requirements-dev.lock
	.venv/bin/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header --extra bench -c requirements-dev.lock pyproject.toml -o requirements-bench.lock
	echo 'setuptools>=77' | .venv/bin/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header -c requirements-dev.lock - -o requirements-build.lock
