.DEFAULT_GOAL := help
# The newest that runs: an entry of pyenv is found, and fails, where no such version is chosen.
PYTHON ?= $(shell for name in python3.13 python3.12 python3.11 python3; do \
  $$name -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v $$name; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
HOST ?= 127.0.0.1
PORT ?= 8787
DATA_DIR ?= ./data
export HOST PORT DATA_DIR
unexport PYTHONDONTWRITEBYTECODE # tests start hundreds of processes: each would compile all modules again

.PHONY: help run run-stack setup test test-deep fast check format screenshots dist audit bench bench-scale soak faults attack conformance lock migrations clean

help: ## List what make can do
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

run: $(VENV)/.base ## Start a hub with a demo agent on http://HOST:PORT (Ctrl-C ends it)
	@DEV_LOGIN=$${DEV_LOGIN:-1} DEMO=$${DEMO:-1} GATEWAY=$${GATEWAY:-1} exec $(BIN)/python manage.py serve

run-stack: $(VENV)/.dev ## Start the production shape: PostgreSQL, Redis, two web processes, worker, beat, proxy
	@exec $(BIN)/python -m deploy.stack

setup: $(VENV)/.sdks ## Install everything, also for tests and checks

test: $(VENV)/.sdks ## Run the suite on SQLite and on PostgreSQL with Redis (ten minutes on two cores)
	@$(BIN)/python -m pytest -n 4 --dist loadgroup --durations 10 -m "not deep"

test-deep: $(VENV)/.sdks ## Run what `make test` leaves out: generated cases, every page and caller, long faults
	@$(BIN)/python -m pytest -n 3 --dist loadgroup --durations 10 -m deep

FAST := tests/contracts tests/repository tests/surfaces/test_hub_dialect.py \
  tests/operators/test_prompt.py tests/native/test_shares.py

fast: $(VENV)/.dev ## Run quick tests of the core and a few of each wire
	@$(BIN)/python -m pytest -n 2 -m "not slow and not distributed and not deep" -x -q $(FAST)

check: $(VENV)/.dev ## Lint, types, imports, migrations, the API description
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@DATA_DIR=$(VENV)/check $(BIN)/python manage.py makemigrations --check --dry-run
	@DATA_DIR=$(VENV)/check $(BIN)/python manage.py spectacular --validate --fail-on-warn --file /dev/null
	@DATA_DIR=$(VENV)/check PUBLIC_URL=https://hub.example TRUSTED_PROXIES=127.0.0.1 \
	  $(BIN)/python manage.py check --deploy --fail-level WARNING

format: $(VENV)/.dev ## Format and mend what can be mended
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

screenshots: $(VENV)/.dev ## Take pictures of every page into ./screenshots
	@$(BIN)/python -m tests.browser.screenshots

dist: $(VENV)/.dev ## Make connect.pyz, the wheels clawbridge and clawbridge-hub, and the list of components (SBOM) in ./dist
	@$(BIN)/python -m clawbridge.connect.packing dist
	@$(BIN)/python -m deploy.components dist
	@SOURCE_DATE_EPOCH=315532800 $(PIP) wheel --no-deps --wheel-dir dist ./clawbridge .

audit: $(VENV)/.audit ## Look for known vulnerabilities of all locked packages, in the databases of PyPI and npm
	@failed=0; for lock in requirements/*.txt; do echo "$$lock"; $(VENV)/audit/bin/pip-audit --strict --disable-pip --require-hashes \
	  --progress-spinner off -r $$lock || failed=1; done; \
	if command -v npm >/dev/null; then for folder in requirements/sdk-js-*; do echo "$$folder"; \
	  (cd $$folder && npm audit --package-lock-only) || failed=1; done; else echo "no npm: sdk-js-* are not looked at"; fi; exit $$failed

bench: $(VENV)/.dev ## Measure the hub beside an echo server of the official SDK
	@$(BIN)/python -m lab.bench
	@$(BIN)/python -m lab.bench.agnt
	@$(BIN)/python -m lab.bench.calls
	@$(BIN)/python -m lab.bench.completions
	@$(BIN)/python -m lab.bench.directory
	@$(BIN)/python -m lab.bench.events
	@$(BIN)/python -m lab.bench.mcp
	@$(BIN)/python -m lab.bench.relay
	@DATA_DIR=$(VENV)/check $(BIN)/python -m lab.bench.rendering
	@$(BIN)/python -m lab.bench.start

bench-scale: $(VENV)/.dev ## Measure several processes, large and old hubs, crowds, half load: half an hour
	@$(BIN)/python -m lab.bench.scale_processes
	@$(BIN)/python -m lab.bench.scale_growth
	@$(BIN)/python -m lab.bench.scale_crowded
	@$(BIN)/python -m lab.bench.scale_latency
	@$(BIN)/python -m lab.bench.relay

soak: $(VENV)/.dev ## Ask a hub all kinds of things for half an hour, and see whether it grows
	@$(BIN)/python -m lab.bench.soak

conformance: $(VENV)/.dev ## Record a run of the A2A conformance kit, and make its page (REPORT=compatibility.json KIT=commit)
	@$(BIN)/python -m conformance $(REPORT) --kit "$(KIT)"

faults: $(VENV)/.dev ## Do faults to a grown hub under load, and count what broke (SET=short|long|F1,F3)
	@$(BIN)/python -m lab.faults --set $(or $(SET),short) $(if $(ASKS),--asks $(ASKS)) $(if $(OUT),--out $(OUT))

attack: $(VENV)/.sdks ## Attack hubs: strangers, floods, hostile content, generated requests; print what was tried and what broke
	@failed=0; $(BIN)/python -m pytest -n 2 --dist loadgroup --durations 10 -m attack --attacks long || failed=1; \
	$(BIN)/python -m lab.attacks --minutes 14 || failed=1; exit $$failed

migrations: $(VENV)/.dev ## Write the migrations that the models ask for
	@DATA_DIR=$(VENV)/check $(BIN)/python manage.py makemigrations

lock: $(VENV)/.dev ## Compile requirements/*.txt again
	@$(PIP) install pip-tools
	@cd requirements && for set in base stripe dev audit sdk-1 sdk-0.3 sdk-openai sdk-mcp; do ../$(BIN)/pip-compile --quiet --upgrade --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --strip-extras --allow-unsafe \
	  --no-header --no-annotate -o $$set.txt $$set.in; done
	@cd requirements && if command -v npm >/dev/null; then for set in sdk-js-*; do rm -f $$set/package-lock.json; \
	  (cd $$set && npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved --no-audit --no-fund --silent); \
	  done; else echo "no npm: sdk-js-* stay as they are"; fi
	@cd requirements && for set in framework-*.in; do \
	  left_out=$$(sed -n 's/^# left out: //p' $$set | sed 's/[^ ]*/--unsafe-package &/g'); \
	  ../$(BIN)/pip-compile --quiet --upgrade --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --strip-extras \
	  $${left_out:---allow-unsafe} \
	  --no-header --no-annotate -o $${set%.in}.txt $$set; done

clean: ## Remove the virtual environment and caches (DATA_DIR stays)
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

$(VENV)/bin/python:
	@python="$(PYTHON)"; test -n "$$python" || { \
	  echo "Python 3.11, 3.12 or 3.13 is missing, or lacks ensurepip: install python3 and python3-venv"; exit 1; }; \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "want Python 3.11 or newer, not $$python"; exit 1; }; \
	$$python -c 'import ensurepip' 2>/dev/null || { echo "$$python lacks ensurepip: install python3-venv"; exit 1; }; \
	echo "making $(VENV) with $$($$python --version)"; \
	$$python -m venv $(VENV)

# A lock names every package: pip resolves nothing. pip before 23.3 finds no pin for a dependency with extras.
$(VENV)/.base: requirements/base.txt | $(VENV)/bin/python
	@echo "installing what the hub runs on"
	@$(PIP) install --no-deps --require-hashes -r requirements/base.txt
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.base
	@echo "installing what tests and checks need"
	@$(PIP) install --no-deps --require-hashes -r requirements/dev.txt
	@touch $@

$(VENV)/.audit: requirements/audit.txt | $(VENV)/bin/python
	@$(BIN)/python -m venv $(VENV)/audit
	@$(VENV)/audit/bin/python -m pip --disable-pip-version-check --quiet install --no-deps --require-hashes -r requirements/audit.txt
	@touch $@

$(VENV)/.sdks: $(wildcard requirements/sdk-*.txt requirements/framework-*.txt requirements/sdk-js-*/package-lock.json) $(VENV)/.dev
	@echo "installing the clients and frameworks that tests drive, each by itself"
	@$(BIN)/python -m tests.sdks.environments
	@touch $@
