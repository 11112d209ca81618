PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin

.PHONY: demo test check lint types chaos clean
demo: $(VENV)/ready
	@$(BIN)/spillway demo

test: $(VENV)/ready
	@$(BIN)/ruff check src tests
	@$(BIN)/ruff format --check src tests
	@$(BIN)/mypy
	@sh scripts/test $(BIN)/python

lint: $(VENV)/ready
	@$(BIN)/ruff check --fix src tests
	@$(BIN)/ruff format src tests

# Kills drivers 32 times at random moments, stops the controller, moves the clock, fills the disk.
chaos: $(VENV)/ready
	@SPILLWAY_KILLS=24 $(BIN)/python -m pytest -q tests/spark/test_gate_kill.py \
		tests/spark/test_gate_faults.py tests/spark/test_flow_chaos.py tests/spark/test_kafka_chaos.py

types: $(VENV)/ready
	@$(BIN)/mypy

$(VENV)/ready: requirements.txt pyproject.toml lab/pyproject.toml lab/hatch_build.py
	@sh scripts/prerequisites $(PYTHON)
	@echo "making the virtual environment in $(VENV) (a few minutes the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e . -e ./lab
	@touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis out
