# `make demo` and `make test` need Python 3.11 and a package index; they set the rest up themselves.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2

# `test` leaves out what is marked slow until its time on CI is known; `make slow` runs everything.
.PHONY: demo test lint types unit slow docs bench browser dev clean

demo: $(VENV)/.base
	@PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python examples/demo.py

test: lint types unit docs

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/reprise rules fmt --check rules
	$(BIN)/reprise rules lint rules

types: $(VENV)/.dev
	$(BIN)/mypy

unit: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(JOBS) -m "not slow" --durations=15

# Minutes each: many more instances, and the compilers themselves. torch is in the environment; TVM
# has one of its own, and its tests are skipped without it.
slow: $(VENV)/.dev $(VENV)/.tvm
	@export REPRISE_TORCH_PYTHON="$${REPRISE_TORCH_PYTHON:-$(abspath $(BIN))/python}"; \
	tvm="$${REPRISE_TVM_PYTHON:-$(abspath $(VENV))/tvm/bin/python}"; \
	if test -x "$$tvm"; then export REPRISE_TVM_PYTHON="$$tvm"; fi; \
	$(BIN)/python -m pytest -n $(JOBS) --durations=15

docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.engine
	$(BIN)/python -m benchmarks.generation

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

# The tvm extra's packages alone, beside torch's. Where there are none, a note is all.
$(VENV)/.tvm: pyproject.toml | $(VENV)/.python
	@rm -rf $(VENV)/tvm
	@$(PYTHON) -m venv $(VENV)/tvm && \
	$(VENV)/tvm/bin/python -m pip install -qq --disable-pip-version-check $$($(BIN)/python -c \
	'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["tvm"])') || \
	{ rm -rf $(VENV)/tvm; echo "TVM cannot be installed here; its tests will be skipped"; }
	@touch $@
