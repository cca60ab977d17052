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

# Steps of the demo, the longest first. They run two at a time. A line that begins with `+` is printed
# at once, the other output of a step when the step ends.
DEMO := demo-run demo-multi_hot demo-kaggle demo-gen
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync)

.PHONY: setup demo $(DEMO) test test-all slow lint clean

# Python compiles the modules that a command imports; compiling all packages takes longer.
$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "EmberNIC needs Python 3.11 or newer, this is %d.%d" % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile \
		--editable '.[test]'
	touch $@

setup: $(STAMP)

demo: $(STAMP)
	@echo "Four steps, two at a time, about three minutes. Each prints its output when it ends."
	@$(MAKE) --no-print-directory --jobs=2 $(SYNC) $(DEMO)
	@echo "Verilog: $(OUT)/verilog   results: $(OUT)/run.json   picture: $(OUT)/run.png"
	@echo "systems compared, one key per table: $(abspath $(OUT))/compare/kaggle/index.html"
	@echo "systems compared, bags of keys: $(abspath $(OUT))/compare/multi_hot/index.html"

demo-run: $(STAMP)
	+@echo "started: compile a NIC (about two minutes) and run four nodes of it"
	$(BIN)/python -m sim run --config kaggle --nodes 4 --samples 2048 --mini-batch 128 \
		--json $(OUT)/run.json --picture $(OUT)/run.png

demo-gen: $(STAMP)
	+@echo "started: write the Verilog of the NIC"
	$(BIN)/python -m gen --config kaggle --output $(OUT)/verilog

demo-kaggle: $(STAMP)
	+@echo "started: compare all systems, one key per table"
	$(BIN)/python -m sim compare --model kaggle --cluster h100 --output $(OUT)/compare/kaggle

demo-multi_hot: $(STAMP)
	+@echo "started: compare all systems, bags of keys"
	$(BIN)/python -m sim compare --model multi_hot --mini-batch 512 --cluster h100 \
		--measured 8 --output $(OUT)/compare/multi_hot

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
