# Everything runs from a fresh checkout: Python 3.11+ and make are enough, the rest is fetched once.

PYTHON ?= python3
BIN := .venv/bin
ARGS ?=
AREA ?=

.DEFAULT_GOAL := help
.PHONY: help demo test coverage test-full test-versions test-deploy bench chaos lint lock clean setup

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

demo: setup ## See it work: two real Kafka clusters, a mirror between them (ARGS="--keep" and others)
	$(BIN)/sparkmirror demo $(ARGS)

test: lint ## Run all checks and the tests, but for the long ones (ARGS="tests/wire -k lz4" for some)
	$(BIN)/python -m $(if $(ARGS),pytest $(ARGS),tests.rows)

coverage: lint ## Run the tests of `make test`, print branch coverage: the total, and the ten least covered modules
	$(BIN)/coverage erase
	@$(BIN)/coverage run -m tests.rows; code=$$?; \
	    $(BIN)/coverage combine --quiet; $(BIN)/coverage report --sort=cover | awk 'NR <= 12 || $$1 == "TOTAL"'; exit $$code

test-full: private BIN := .venv-oldest/bin
test-full: lint ## Run all but the tests of versions and deployments, with the oldest packages allowed (AREA=position for some)
	@$(PYTHON) bootstrap.py --mirror-maker --oldest
	$(BIN)/python $(if $(AREA),tests/areas.py $(AREA),-m tests.rows --full) $(ARGS)

test-versions: lint ## Run it between all versions of Kafka and on all of Spark, write docs/versions.md (an hour and a half)
	@$(PYTHON) bootstrap.py --mirror-maker
	$(BIN)/python -m pytest --full tests/versions $(ARGS)
	$(BIN)/python tests/versions/table.py

test-deploy: setup ## Check what deploys it with the tools of its platforms: Terraform, CloudFormation and so on
	$(BIN)/python -m pytest --full tests/deploy $(ARGS)

bench: ## Measure against the real MirrorMaker 2
	@$(PYTHON) bootstrap.py --mirror-maker
	$(BIN)/python -m bench $(ARGS)

chaos: setup ## Break clusters and mirror under load, check every record, write docs/results.md
	$(BIN)/python -m chaos $(ARGS)

lint: setup ## Check style, types and layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

lock: setup ## Write the packages that all tests passed with into constraints.txt, with hashes into deploy/docker/lock
	@$(PYTHON) bootstrap.py --lock
	$(BIN)/python deploy/docker/lock_hashes.py

setup: ## Make .venv, find or install Java, fetch Kafka's jars
	@$(PYTHON) bootstrap.py

clean: ## Remove what was made in this checkout; downloads stay in their caches
	rm -rf .venv .venv-oldest .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis dist build spark-warehouse
	find src tests bench chaos -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
