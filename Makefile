PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: setup run test lint docs gallery wheels

setup: $(READY)

# The stamp is made again only when what is to be installed changes.
$(READY): pyproject.toml papers/pyproject.toml benchmarks/pyproject.toml constraints.txt
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
		{ echo "axiswise needs Python 3.11 or newer; got $$($(PYTHON) --version). Try: make setup PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]' --editable ./papers --editable ./benchmarks
	@touch $(READY)

run: setup
	$(BIN)/axiswise run quickstart

test: setup
	$(BIN)/python -m pytest -n 2

lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/pyright

# The documentation, in build/docs: open build/docs/index.html. Warnings are errors.
docs: setup
	$(BIN)/sphinx-build -W --keep-going -q -b html docs build/docs

# The pages of results/, which are made from its records and not kept in git.
gallery: setup
	$(BIN)/axiswise gallery results
	$(BIN)/axiswise report results/objectives
	$(BIN)/axiswise report results/comparison

# Both packages, in dist/.
wheels: setup
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist . ./papers
