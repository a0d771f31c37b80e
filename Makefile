# `make demo` and `make test` need nothing but Python 3.10 or later: they set up .venv themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Everything that is downloaded stays in the repository.
export PIP_CACHE_DIR := $(CURDIR)/$(VENV)/cache
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start thousands of processes: none of them should have to compile what another has.
export PYTHONDONTWRITEBYTECODE :=
INSTALL = $(BIN)/python -m pip install --quiet --require-hashes -r
SOJOURN = $(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
LOCK = $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url \
	--no-annotate --no-header --python-version 3.10 --upgrade

# Tests wait as much as they work: twice as many as there are cores. Each worker needs up to 1 GB.
WORKERS ?= $(shell n=$$(( $$(getconf _NPROCESSORS_ONLN) * 2 )); echo $$(( n < 8 ? n : 8 )))
PYTEST = $(BIN)/python -m pytest -n $(WORKERS)

.PHONY: help demo install test test-slow test-full kube test-kube forge test-forge test-small lint fuzz bench lock proto docs clean

help: ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/run.done ## Run a training script on the local cloud, take its machine away, watch it recover
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash examples/demo.sh

install: $(VENV)/install.done ## Put the Terraform provider in place, run from this clone
	$(BIN)/sojourn terraform install

test: lint ## Check style, types and layers, and run the tests
	$(PYTEST) -m "not slow and not kube and not forge and not full"

test-slow: $(VENV)/dev.done ## Run the tests that take long: with machines that boot, among others
	$(PYTEST) -m "slow and not kube and not forge and not full"

test-full: test test-slow ## Run all tests but those on Kubernetes and Gitea: an hour and more
	$(PYTEST) -m "full and not kube and not forge"

kube: $(VENV)/dev.done ## Build the Kubernetes for tests, once: 15 minutes or more
	$(BIN)/python -m tests.kube build

test-kube: $(VENV)/dev.done ## Run the tests on Kubernetes; root on Linux, after `make kube`
	$(BIN)/python -m pytest -n 2 -m "kube and not alone"
	$(BIN)/python -m pytest -n 0 -m "kube and alone"

forge: $(VENV)/dev.done ## Build the Gitea for tests, once: 10 minutes or more
	$(BIN)/python -m tests.forge build

test-forge: $(VENV)/dev.done ## Run the tests on a real Gitea, after `make forge`
	$(BIN)/python -m pytest -n 2 -m forge

test-small: ## Run `make test` from a fresh clone on a small and busy machine; root on Linux
	tests/small_machine.sh

lint: $(VENV)/dev.done ## Check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

FUZZ_SECONDS ?= 600
fuzz: $(VENV)/dev.done ## Put into stores what a machine could write, and run every verb on them; for ten minutes
	SOJOURN_FUZZ_SECONDS=$(FUZZ_SECONDS) SOJOURN_FUZZ_WORKERS=$(WORKERS) $(PYTEST) tests/fuzz

bench: $(VENV)/bench.done ## Measure beside the peers
	$(BIN)/python -m bench

lock: $(VENV)/dev.done ## Choose new versions of all dependencies
	$(BIN)/python -m pip install --quiet uv
	$(LOCK) pyproject.toml --group build -o requirements/run.txt
	$(BIN)/python -m tests.simcloud.wheellock requirements/run.txt src/sojourn/agent/wheels.json
	$(LOCK) pyproject.toml --all-extras --group build -o requirements/install.txt
	$(LOCK) pyproject.toml --all-extras --group dev -o requirements/dev.txt
	$(LOCK) pyproject.toml --all-extras --group dev --group bench -o requirements/bench.txt

PLUGIN := src/sojourn/terraform/plugin
proto: $(VENV)/dev.done ## Compile the messages of Terraform's protocol
	$(BIN)/python -m grpc_tools.protoc -I $(PLUGIN) wire.proto \
		--descriptor_set_out=$(PLUGIN)/wire.binpb --pyi_out=$(PLUGIN)
	mv $(PLUGIN)/wire_pb2.pyi $(PLUGIN)/wire.pyi

docs: $(VENV)/dev.done ## Write the reference of the Terraform provider into its page
	$(BIN)/python -m sojourn.terraform.reference docs/terraform.md

clean: ## Remove what the other targets made
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

# What simulated machines install: tests talk to nobody, so it is fetched before.
$(VENV)/dev.done $(VENV)/bench.done: $(VENV)/wheels.done $(VENV)/debs.done $(VENV)/openmpi.done $(VENV)/podman.done
$(VENV)/wheels.done: $(VENV)/run.done src/sojourn/agent/wheels.json
	$(BIN)/python -m tests.simcloud.wheels $(VENV)/wheels
	@touch $@
$(VENV)/debs.done: $(VENV)/run.done
	$(BIN)/python -m tests.simcloud.debs $(VENV)/debs
	@touch $@
$(VENV)/openmpi.done: $(VENV)/run.done
	$(BIN)/python -m tests.simcloud.debs $(VENV)/openmpi openmpi
	@touch $@
$(VENV)/podman.done: $(VENV)/run.done
	$(BIN)/python -m tests.simcloud.debs $(VENV)/podman podman
	@touch $@

$(VENV)/%.done: requirements/%.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) $<
	$(SOJOURN)
	@touch $@
