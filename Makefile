# Three commands do everything, each with its own set-up: `make check`, a minute; `make test`, what `.ci/run` runs; `make prove`.
# ARGS is handed on: make prove ARGS="--seed 7", make test ARGS='-m "not stack"', make check ARGS="-k ledger".

VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/pytest tests -rs --no-fold-skipped
# Every step runs, also after one that failed, and the status is that of all.
STEPS := $(MAKE) --no-print-directory --keep-going
# Without its cache of compiled files each process of Python compiles all that it imports: seconds, each time.
export PYTHONDONTWRITEBYTECODE :=
# To read the other hundred files takes half a minute.
STACKED = $$(grep -l 'mark\.stack' tests/test_*.py)
SUITE := proving
STAMP := $(VENV)/set-up
PIP_FLAGS := --disable-pip-version-check --no-input --quiet
# Newer ones are not tried with the locked Spark, so an older one that fits goes first.
ifndef PYTHON
PYTHON := $(firstword $(foreach name,python3.11 python3.12 python3.13 python3,$(shell \
	$(name) -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v $(name))))
endif

.PHONY: prove check test quick pure stack lint style imports types format docs set-up java jars archives lock dist clean
.DEFAULT_GOAL := prove

# SUITE: proving (with a dozen of the sinks), or a longer one that is not part of `.ci/run`: sinks, sources, shapes, upgrades, versions, dstreams, hadoop, s3, azure,
# eventhubs, guarantees, all (every scenario that is here), containers, yarn, hostile, tests (those marked `prove`), browser (the pages in Chromium), sabotage, soak,
# starts (what `onceproof new` writes), unsteady, mutants, dependencies (the lowest and the newest of each, by uv).
# Of other sinks than Postgres: a broken program and its repair under one schedule, for sinks whose server is a folder, a
# topic or the user's own code.
DOZEN := $(patsubst %,scenarios/sinks/%.yaml,\
  files_parquet_listed_mid_batch files_parquet_manifest_mid_batch \
  files_uuid_mid_batch files_overwritten_mid_batch \
  kafka_spark_sink_mid_batch kafka_read_once_mid_batch \
  kafka_sent kafka_in_transaction delta_unnumbered delta_numbered \
  python_sqlite_appended python_sqlite_with_batch)

prove: set-up
	@case "$(SUITE)" in \
	  proving) $(BIN)/onceproof run scenarios/proving $(DOZEN) $(ARGS) ;; \
	  sinks|sources|shapes|upgrades|dstreams|hadoop|s3|azure|eventhubs|guarantees) $(BIN)/onceproof run scenarios/$(SUITE) $(ARGS) ;; \
	  versions) PYTHONPATH=. $(BIN)/python bench/versions.py scenarios/proving $(DOZEN) -- $(ARGS) ;; \
	  yarn) $(BIN)/onceproof run scenarios/yarn --stack yarn $(ARGS) ;; \
	  all) $(BIN)/onceproof run scenarios --skip-unsupported $(ARGS) ;; \
	  containers) $(BIN)/python docker/build.py --again && eval "$$($(BIN)/python docker/build.py --exports)" && \
	    $(BIN)/python -m harness.training.containers && ONCEPROOF_NEED_CONTAINERS=1 ONCEPROOF_CONTAINERS="$${ONCEPROOF_CONTAINERS:-_}" \
	    $(BIN)/pytest tests/test_containers.py tests/test_compose.py -rs $(ARGS) ;; \
	  hostile) $(BIN)/pytest tests/test_hostile.py bench/hostile.py -rs $(ARGS) ;; \
	  tests) $(BIN)/pytest -m prove -n 2 --dist loadfile --no-loadscope-reorder -rs $(ARGS) ;; \
	  browser) $(BIN)/python -m pip install $(PIP_FLAGS) --require-hashes --no-deps -r requirements-browser.lock && \
	    PYTHONPATH=. $(BIN)/pytest -p bench.browser_line bench/browser.py -rs $(ARGS) ;; \
	  dependencies|sabotage|soak|starts|unsteady|mutants) PYTHONPATH=. $(BIN)/python bench/$(SUITE).py $(ARGS) ;; \
	  *) echo "onceproof: asked for the suite $(SUITE); there are proving, sinks, sources, shapes, upgrades, versions, dstreams, hadoop, s3, azure, eventhubs, guarantees, all, containers, yarn, hostile, tests, browser, sabotage, soak, starts, unsteady, mutants, dependencies" >&2; exit 2 ;; \
	esac

# What needs neither a server nor a process of its own, nor seconds, with few examples of each property.
check: $(STAMP)
	@$(STEPS) lint quick

quick:
	@$(PYTEST) -q -m "not (stack or subprocess or slow)" -n logical --dist worksteal --hypothesis-profile=work $(ARGS)

ifneq ($(strip $(ARGS)),)
test: set-up
	@$(PYTEST) $(ARGS)
else
test: set-up
	@$(STEPS) --jobs 2 lint docs pure; first=$$?; $(STEPS) stack && [ $$first -eq 0 ]
endif

# The tests without servers side by side on every core. Lint and the site are quiet where they find nothing: they go beside
# them.
pure:
	@$(PYTEST) -m "not (stack or prove)" -n logical --dist worksteal --durations=25 --durations-min=5

# The others, three files at once, the long ones first, each process with a stack of its own: two leave a quarter of two cores
# idle. Real runs that others stand for are marked `prove`.
stack:
	@$(BIN)/pytest $(STACKED) -rs --no-fold-skipped -m "stack and not prove" -n 3 --dist loadfile --no-loadscope-reorder \
	  --durations=60 --durations-min=5

lint: style imports types

style: $(STAMP)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet . || { $(BIN)/ruff format --check . ; echo "cure: make format" >&2; exit 1; }

imports: $(STAMP)
	@$(BIN)/lint-imports --no-logo >$(VENV)/imports || { cat $(VENV)/imports; exit 1; }

types: $(STAMP)
	@$(BIN)/mypy --no-error-summary

# The site keeps the repository's layout, so that a link is the same in both.
docs: $(STAMP)
	@rm -rf build/pages && mkdir -p build/pages
	@git ls-files -z --cached --others --exclude-standard '*.md' LICENSE docs pipelines scenarios bench tests ':!NEXT.md' ':!reports' | \
	  tar --create --null --ignore-failed-read --files-from - | tar --extract --directory build/pages
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict >build/docs.log 2>&1 || { grep -v INFO build/docs.log >&2; exit 1; }

format: $(STAMP)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

set-up: $(STAMP) jars archives

java: python
	@cd $(CURDIR) && $(PYTHON) -m harness.machine.java >/dev/null

.PHONY: python
python:
	@test -n "$(PYTHON)" || { echo "onceproof: needs Python 3.11 or newer with venv; found" \
	  "$$(python3 --version 2>&1 | head -n 1); install it (Debian and Ubuntu: python3 python3-venv)" >&2; exit 4; }

# Java is asked for first, so that a machine without it is told so at once, also by `make --jobs`.
$(STAMP): requirements.lock pyproject.toml | java
	@echo "setting up $(VENV) from requirements.lock (some minutes the first time)"
	@if command -v uv >/dev/null; then \
	  uv venv --quiet --allow-existing --seed --python "$(PYTHON)" $(VENV) && \
	  uv pip install --quiet --python $(BIN)/python --require-hashes --no-deps -r requirements.lock; \
	else \
	  "$(PYTHON)" -m venv $(VENV) && \
	  $(BIN)/python -m pip install $(PIP_FLAGS) --no-compile --require-hashes --no-deps -r requirements.lock; \
	fi
	@$(BIN)/python -m pip install $(PIP_FLAGS) --no-deps --no-build-isolation --editable .
	@touch $@

jars: $(STAMP)
	@$(BIN)/python -m harness.machine.jars

# They only save time, so a machine that cannot make them goes on without.
archives: jars
	@$(BIN)/python -m harness.training.processes || echo "going on without class archives" >&2

# Those of harness/machine/spark_versions.py.
SPARKS := 3.5.7 4.0.0 4.1.1 4.2.0
# Not uv.lock: it names a registry's host on every line.
lock:
	@command -v uv >/dev/null || { echo "onceproof: make lock needs uv; found none; pip install uv" >&2; exit 4; }
	uv pip compile pyproject.toml --all-extras --group dev --group locked --universal --generate-hashes \
	  --no-emit-index-url --no-emit-find-links --no-header --python-version 3.11 --output-file requirements.lock
	uv pip compile --group programs --universal --generate-hashes --constraints requirements.lock \
	  --no-emit-index-url --no-emit-find-links --no-header --python-version 3.11 \
	  --output-file harness/machine/programs.lock
	for version in $(SPARKS); do \
	  echo "pyspark==$$version" | uv pip compile - --universal --generate-hashes --no-annotate \
	    --no-emit-index-url --no-emit-find-links --no-header --python-version 3.11 \
	    --output-file harness/machine/spark-$${version%.*}.lock || exit; \
	done
	uv pip compile --group browser --universal --generate-hashes --constraints requirements.lock \
	  --no-emit-index-url --no-emit-find-links --no-header --python-version 3.11 --output-file requirements-browser.lock

# The same bytes from the same commit, whatever the machine.
dist: $(STAMP)
	rm -rf dist && mkdir dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) \
	  $(BIN)/python -c 'from flit_core import buildapi as b; b.build_wheel("dist"); b.build_sdist("dist")'

clean:
	rm -rf $(VENV) build dist mutants *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage* \
	  .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
