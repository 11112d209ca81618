PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
REQUIREMENTS ?= requirements.txt
FAST    = not spark and not kafka and not slow

.PHONY: help demo cluster-demo native check test test-slow chaos chaos-cluster fuzz mutants sbom hashes coverage lint types docs clean
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/ready ## every row kept, then what fits: one picture, an audit of every row (4 minutes)
	@$(BIN)/spillway demo

cluster-demo: $(VENV)/ready ## three Spark nodes, a real broker: a query moved and changed, overload, a node killed, an audit (6 minutes)
	@$(BIN)/python tests/kafka/with_broker.py $(BIN)/python tests/cluster/demo.py out/cluster-demo.png

native: $(VENV)/native ## the native reader of Kafka, where there is cargo (two minutes, once)

check: $(VENV)/ready types ## before a commit: lint, format, types, tests without Spark and Kafka
	@$(BIN)/ruff check src tests
	@$(BIN)/ruff format --check src tests
	@$(BIN)/python -m pytest -q -m "$(FAST)"

test: $(VENV)/ready $(VENV)/native types ## lint, format, types, and every test that is not slow
	@$(BIN)/ruff check src tests
	@$(BIN)/ruff format --check src tests
	@sh scripts/test $(BIN)/python

test-slow: $(VENV)/ready ## the tests that are marked slow: a cluster, a browser, storage, kills
	@$(BIN)/python -m pytest -m slow

# Kills drivers at random moments, freezes them, stops the broker, moves the clock, fills the disk.
SPILLWAY_KILLS ?= 100
chaos: $(VENV)/ready ## long runs with faults: 100 kills (SPILLWAY_KILLS=1000 for a night)
	@SPILLWAY_KILLS=$(SPILLWAY_KILLS) $(BIN)/python -m pytest -q \
		tests/spark/test_gate_kill.py tests/spark/test_classes_kill.py \
		tests/spark/test_template_kill.py tests/spark/test_shedders_kill.py \
		tests/spark/test_gate_faults.py tests/spark/test_flow_chaos.py tests/spark/test_kafka_chaos.py

INPUTS ?= 50000
SEED   ?=
fuzz: $(VENV)/ready ## 50,000 inputs that are nearly right (INPUTS=, SEED=): ten minutes
	@cd tests && $(abspath $(BIN))/python -m fuzz.run $(INPUTS) $(SEED)
ROUNDS ?= 30
chaos-cluster: $(VENV)/ready ## kills and freezes amid live moves, on both control logs (ROUNDS=30 each: hours)
	@$(BIN)/python tests/cluster/chaos.py folder $(ROUNDS)
	@$(BIN)/python tests/cluster/chaos.py kafka $(ROUNDS)

coverage: $(VENV)/ready ## which lines the tests without Spark and Kafka reach
	@$(BIN)/python -m pytest -q -m "$(FAST)" --cov --cov-report=term:skip-covered

lint: $(VENV)/ready ## repairs what ruff can repair
	@$(BIN)/ruff check --fix src tests
	@$(BIN)/ruff format src tests

types: $(VENV)/ready ## mypy over source and tests
	@$(BIN)/mypy

MUTANTS ?= 400
mutants: $(VENV)/ready ## breaks one expression at a time in the pure rooms (MUTANTS=): hours
	@$(BIN)/python tests/mutants.py $(MUTANTS)

sbom: $(VENV)/ready ## what the product brings, as CycloneDX in out/sbom.json
	@mkdir -p out && $(BIN)/python scripts/sbom.py >out/sbom.json && echo out/sbom.json

hashes: $(VENV)/ready ## requirements.txt with the hashes of its files; then make REQUIREMENTS=out/requirements.txt
	@mkdir -p out && $(BIN)/python scripts/hashes.py >out/requirements.txt && echo out/requirements.txt

docs: $(VENV)/ready ## the tables in docs/ that are made from declarations
	@$(BIN)/python -m spillway.check.pages docs

$(VENV)/ready: $(REQUIREMENTS) pyproject.toml lab/pyproject.toml lab/hatch_build.py
	@sh scripts/prerequisites $(PYTHON)
	@echo "making the virtual environment in $(VENV) (a few minutes the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r $(REQUIREMENTS)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e ./lab
	@touch $@

$(VENV)/native: native/Cargo.toml native/pyproject.toml $(wildcard native/src/*.rs) | $(VENV)/ready
	@sh scripts/native $(BIN)/python
	@touch $@

clean: ## removes the virtual environment, caches and results
	rm -rf $(VENV) native/target .mypy_cache .ruff_cache .pytest_cache .hypothesis out
