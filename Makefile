# `make demo` and `make test` need Python 3.11 and a package index; they set the rest up themselves.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2

# What is marked slow needs torch (which is in the environment) and TVM, which has an environment of
# its own beside it, or is where REPRISE_TVM_PYTHON says. Where either cannot be installed or
# imported, `make test` stops: tests that are skipped for want of a compiler would hide what is
# broken. `make quick` leaves them out.
TVM := $(if $(REPRISE_TVM_PYTHON),,$(VENV)/.tvm)

.PHONY: demo test quick lint types tests unit docs bench browser dev clean

demo: $(VENV)/.base
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python examples/demo.py

# All of it takes 25 minutes on two cores; `make quick`, four.
test: lint types tests docs

quick: lint types unit docs

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/reprise rules fmt --check rules
	$(BIN)/reprise rules lint rules

types: $(VENV)/.dev
	$(BIN)/mypy

# A file's tests stay together: they share what takes long to set up, such as a compiler's process.
# Files with slow tests come first (tests/conftest.py), so that no process waits for the other.
PYTEST := $(BIN)/python -m pytest
SHARED := -n $(JOBS) --dist loadfile --no-loadscope-reorder --durations=15

# Some tests kill processes at random moments or wait for them, and a machine may be busy: what fails
# is run once more, by itself, and has to pass then.
tests: $(VENV)/.dev $(TVM)
	@export REPRISE_TORCH_PYTHON="$${REPRISE_TORCH_PYTHON:-$(abspath $(BIN))/python}"; \
	export REPRISE_TVM_PYTHON="$${REPRISE_TVM_PYTHON:-$(abspath $(VENV))/tvm/bin/python}"; \
	"$$REPRISE_TORCH_PYTHON" -c 'import torch' && "$$REPRISE_TVM_PYTHON" -c 'import tvm' || exit 2; \
	$(PYTEST) $(SHARED) || { [ $$? -eq 1 ] && echo "Once more, what failed:" && $(PYTEST) --last-failed; }

unit: $(VENV)/.dev
	$(PYTEST) $(SHARED) -m "not slow"

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.generation
	$(BIN)/python -m benchmarks.einsum --quick

# For the tests of the report's page, which are skipped without it. REPRISE_CHROMIUM names another.
browser:
	@command -v chromium >/dev/null || { apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
		chromium fonts-dejavu-core >/dev/null; }

dev: $(VENV)/.dev

clean:
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis

# The stamps make both targets quick once the environment stands, and redo it when the
# dependencies change.
$(VENV)/.python:
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.base: pyproject.toml | $(VENV)/.python
	$(BIN)/python -m pip install -qq --disable-pip-version-check -e .
	@touch $@

# The torch extra: operator signatures are checked against torch's meta tensors.
$(VENV)/.dev: pyproject.toml | $(VENV)/.python
	$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[dev,torch]'
	@touch $@ $(VENV)/.base

# The tvm extra's packages alone, beside torch's.
$(VENV)/.tvm: pyproject.toml | $(VENV)/.python
	@rm -rf $(VENV)/tvm
	$(PYTHON) -m venv $(VENV)/tvm
	@$(VENV)/tvm/bin/python -m pip install -qq --disable-pip-version-check $$($(BIN)/python -c \
	'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["tvm"])')
	@touch $@
