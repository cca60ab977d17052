# Two commands: `make demo` and `make test`. Each sets up its own .venv first.
# More tests: `make test-all`, with all extras installed before, and `make slow`, the longest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT := out
STAMP := $(VENV)/.installed
JOBS ?= 2
TESTS = $(BIN)/python -m pytest -n $(JOBS) --dist worksteal
# The packaged compiler and simulators are used unless CXX is given on the command line or in the
# environment; make's own default for CXX is not a choice anybody made.
ifeq ($(origin CXX),default)
undefine CXX
endif

.PHONY: setup demo test test-all slow lint clean

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "EmberNIC needs Python 3.11 or newer, this is %d.%d" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

setup: $(STAMP)

demo: $(STAMP)
	$(BIN)/python -m gen --config kaggle --output $(OUT)/verilog
	$(BIN)/python -m sim run --config kaggle --nodes 4 --samples 2048 --mini-batch 128 \
		--json $(OUT)/run.json --picture $(OUT)/run.png
	$(BIN)/python -m sim compare --model kaggle --cluster h100 --output $(OUT)/compare/kaggle
	$(BIN)/python -m sim compare --model multi_hot --mini-batch 512 --cluster h100 \
		--output $(OUT)/compare/multi_hot
	@echo "Verilog: $(OUT)/verilog   results: $(OUT)/run.json   picture: $(OUT)/run.png"
	@echo "systems compared, one key per table: $(abspath $(OUT))/compare/kaggle/index.html"
	@echo "systems compared, bags of keys: $(abspath $(OUT))/compare/multi_hot/index.html"

test: $(STAMP)
	$(TESTS) -m "not slow and not thorough" --costs=$(OUT)/test.csv

test-all: $(STAMP)
	$(TESTS) -m "not slow" --costs=$(OUT)/test-all.csv

slow: $(STAMP)
	$(TESTS) -m slow --costs=$(OUT)/slow.csv

lint:
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[lint]'
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/pyright

clean:
	rm -rf $(OUT) build *.egg-info .pytest_cache .ruff_cache .hypothesis
