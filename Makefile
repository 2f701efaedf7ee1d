# make run   tunes a matmul on this CPU, installing what it needs first
# make test  runs all tests but those that take minutes
# make faults  runs those that kill and starve real runs
# make docs  builds the documentation into site/
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3,$(shell command -v $(p) 2>/dev/null)))
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test faults lint docs wheel clean

run: $(VENV)/core.done
	$(BIN)/autotune run --op matmul --target llvm

test: $(VENV)/dev.done
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not long"

# Kills, starves and fills up real runs; needs the right to mount for some of it.
faults: $(VENV)/dev.done
	$(BIN)/python -m pytest -m faults

lint: $(VENV)/dev.done
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/dev.done
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Builds the wheel, installs it into a clean environment and uses it from /, where the checkout cannot help.
wheel: $(VENV)/dev.done
	rm -rf dist $(VENV)-wheel
	$(BIN)/python -m build --wheel --outdir dist
	$(PYTHON) -m venv $(VENV)-wheel
	$(VENV)-wheel/bin/pip install -q -c constraints.txt dist/*.whl
	out=$$(mktemp -d) && bin=$(CURDIR)/$(VENV)-wheel/bin && cd / && \
	$$bin/autotune space --op matmul --target llvm && \
	$$bin/autotune run --op matmul --target llvm --shape M=64,N=64,K=64 --trials 6 --out $$out/run --quiet && \
	$$bin/autotune best $$out/run && rm -rf $$out

$(VENV)/pip.done:
	@test -n "$(PYTHON)" || { echo "make: no python3 found; install Python 3.11 or newer, or call make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is older than 3.11; call make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/core.done: $(VENV)/pip.done pyproject.toml constraints.txt
	$(BIN)/pip install -q -c constraints.txt -e .
	@touch $@

$(VENV)/dev.done: $(VENV)/core.done
	$(BIN)/pip install -q -c constraints.txt -r requirements-dev.txt
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-wheel dist build
