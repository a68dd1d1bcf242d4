# Everything a contributor needs, each from a clean clone: `make help` lists it.
# The virtual environment is .venv; it is brought up to date when pyproject.toml changes.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

# The first Python that torch 2.13 has wheels for. Say PYTHON=… to choose another.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python3.10; do \
	$$python -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null && echo $$python && break; done)
# Handed to every `pip install`, for example PIP_ARGS="--extra-index-url …" for PyTorch's CPU wheel index.
PIP_ARGS ?=
# Handed to pytest, for example PYTEST_ARGS="-k resolver".
PYTEST_ARGS ?=

# For another project's tests: root of a checkout of its sources, and options for the script, such as "--only test/nn".
CHECKOUT ?=
CHECKOUT_ARGS ?=

BIN := .venv/bin
READY := .venv/.ready
DOCS_READY := .venv/.docs-ready
CXX_FOUND := $(shell command -v c++ || command -v g++ || command -v clang++)

.PHONY: help demo test test-fast torch-npu-tests accelerate-tests lint format opinfo bench docs clean

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/^([a-z-]+):.*## (.*)/\1|\2/' | while IFS='|' read -r name text; do printf '  make %-16s %s\n' "$$name" "$$text"; done

demo: $(READY) ## port examples/gpt, train it on the CPU and on the simulated NPU, compare the losses
	@$(BIN)/python tools/demo.py

test: lint ## lint, types, import contracts, and every test (what CI runs)
	OMP_NUM_THREADS=$${OMP_NUM_THREADS:-1} $(BIN)/python -m pytest -n auto --maxprocesses 4 $(PYTEST_ARGS)

test-fast: $(READY) ## every test but those on the simulated NPU
	$(BIN)/python -m pytest -m "not sim" $(PYTEST_ARGS)

torch-npu-tests: $(READY) ## torch_npu's own tests on the simulated NPU: CHECKOUT=path to its sources (Ascend/pytorch)
	@test -n "$(CHECKOUT)" || { echo "npuport: say where torch_npu's sources are: make torch-npu-tests CHECKOUT=path" >&2; exit 1; }
	@$(BIN)/python -m pip install -qq $(PIP_ARGS) --group torch-npu-tests
	@$(BIN)/python tools/run_torch_npu_tests.py "$(CHECKOUT)" $(CHECKOUT_ARGS)

accelerate-tests: $(READY) ## accelerate's own tests on the simulated NPU: CHECKOUT=path to its sources (huggingface/accelerate)
	@test -n "$(CHECKOUT)" || { echo "npuport: say where accelerate's sources are: make accelerate-tests CHECKOUT=path" >&2; exit 1; }
	@$(BIN)/python -m pip install -qq $(PIP_ARGS) --group accelerate-tests
	@$(BIN)/python tools/run_accelerate_tests.py "$(CHECKOUT)" $(CHECKOUT_ARGS)

lint: $(READY) ## ruff, mypy --strict, import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## apply ruff's formatting and safe fixes; refresh the output in the READMEs
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(BIN)/python tools/readme.py

opinfo: $(READY) ## PyTorch's whole operator database on the simulated NPU against the CPU, with a report
	$(BIN)/python tests/sim/opinfo/run.py

bench: $(READY) ## every claim about speed, as a ratio against a peer or a floor of the same run
	@for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python "$$script"; done

docs: $(DOCS_READY) ## the documentation, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

clean: ## remove the virtual environment and all that was built
	rm -rf .venv build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests tools examples benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

$(READY): pyproject.toml
	@test -n "$(PYTHON)" || { echo "npuport: no Python 3.10 to 3.13 found. Install one, or say which: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "npuport: $(PYTHON) has no venv module. On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@test -n "$(CXX_FOUND)" || { echo "npuport: no C++ compiler, which the simulated NPU needs once. On Debian and Ubuntu: apt-get install g++" >&2; exit 1; }
	@echo "Setting up .venv with $$($(PYTHON) --version), torch and torch_npu; this takes a minute or two"
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@$(BIN)/python -m pip install -qq $(PIP_ARGS) --upgrade "pip>=25.1"
	@$(BIN)/python -m pip install -qq $(PIP_ARGS) torch==2.13.0 torch-npu==2.13.0
	@$(BIN)/python -m pip install -qq $(PIP_ARGS) --group dev --editable ".[sim]"
	@touch $@

$(DOCS_READY): $(READY)
	@$(BIN)/python -m pip install -qq $(PIP_ARGS) --group docs
	@touch $@
