PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
TRITON := build/triton

.PHONY: setup run test kernels lint docs gallery wheels

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

# Kernels by Triton's interpreter on the CPU. Triton is in a folder of its own, where PyTorch's compiler does not find it.
kernels: setup $(TRITON)/.ready
	TRITON_INTERPRET=1 PYTHONPATH=$(TRITON) $(BIN)/python -m pytest -q -n 2 -o addopts= --import-mode=importlib \
		-m kernels tests/numerics tests/data/test_shapes3d.py tests/population/test_acceleration.py

$(TRITON)/.ready: constraints.txt
	rm -rf $(TRITON)
	$(BIN)/python -m pip install --quiet --no-deps --constraint constraints.txt --target $(TRITON) triton
	@touch $@

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
