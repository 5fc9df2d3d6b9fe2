# Every target does its own set-up, so a fresh clone needs python3 (3.11 or newer) and make only.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Exact versions of everything that is installed; empty for the newest there are.
CONSTRAINTS := constraints.txt
# As variables and not as `-c`, because only these reach the environment that pip builds the package in; which of
# the two does depends on pip's age.
PIP := PIP_CONSTRAINT=$(CONSTRAINTS) PIP_BUILD_CONSTRAINT=$(CONSTRAINTS) \
	$(BIN)/python -m pip install -q --disable-pip-version-check --root-user-action=ignore
# On Debian as root: starts no server, and waits while another process installs something.
INSTALL := RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300
# Worker processes of pytest for a machine with two cores: three times as many, since tests wait for servers, timers and
# processes. With six the cores are idle only while one process collects the tests.
JOBS ?= 6
# Recorded traffic: gzipped JSON lines, one exchange each.
CORPUS ?= ../shared/corpus/dev

# What is compiled is kept, whatever the shell says: tests start hundreds of processes, and each would compile it again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: .client-programs .nginx .valgrind help setup demo test test-core newcomer full newest pins servers promtool chromium page page-check page-test page-pictures test-fleet lock prices recording container wheel packages artifacts release coverage sbom lint format types contracts docs docs-check docs-blocks site bench bench-peers probe-peers bench-core capacity guard guard-update leaks lab soak corpus judges mutants sim same rolling clients watch contract live clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':[^#]*## ' '{ \
		n = split($$2, words, " "); line = sprintf("%-13s", $$1); \
		for (i = 1; i <= n; i++) { \
			if (length(line) + 1 + length(words[i]) > 79) { print line; line = sprintf("%13s", "") } \
			line = line " " words[i] } \
		print line }'

# Debian ships python3 without ensurepip; only then is a system package needed.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Wireglot needs Python 3.11 or newer")'
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { apt-get update -qq && $(INSTALL) python3-venv; }
	$(PYTHON) -m venv $(VENV)

# What is compiled into the package, where there is a C compiler.
NATIVE := src/wireglot_core/wire/_scan.c tools/release/build_hook.py

# The package alone, for `make demo`.
$(VENV)/.package: $(BIN)/python pyproject.toml constraints.txt $(NATIVE)
	$(PIP) -e .
	@touch $@

# The package with everything that tests and checks it.
$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt $(NATIVE)
	$(PIP) -e '.[dev]'
	@touch $(VENV)/.package $@

setup: $(VENV)/.dev ## Create .venv with the package and its development tools

demo: $(VENV)/.package ## Translate a bundled example between all dialects and show it
	$(BIN)/wireglot demo

# Each worker begins with a part of its own, so that what a folder shares is set up once, and takes over what is left.
test: $(VENV)/.dev ## Run the tests: of large tables some of each kind, with WIREGLOT_WHOLE=1 all
	$(BIN)/python -m pytest -q --workers $(JOBS)

# `wireglot` cannot be imported there: the core is used without it. `make test` has the same tests, since they compute while
# others wait.
test-core: $(VENV)/.dev ## Run the tests of wireglot_core, without the gateway
	WIREGLOT_CORE_ALONE=1 $(BIN)/python -m pytest -q --workers $(JOBS) tests/core

# Programs that tests start are counted with them, but for those that they kill. A few tests look at what is loaded, and
# see what counts: the figure is reported all the same. From 3.12 on Python counts by itself, in a third of the time.
coverage: $(VENV)/.dev ## Run all tests and tell which lines they run: the figure, and .coverage-page/index.html
	$(BIN)/python -m coverage erase
	-COVERAGE_CORE=$$($(BIN)/python -c 'import sys; print("ctrace" if sys.version_info < (3, 12) else "sysmon")') \
		$(BIN)/python -m coverage run -m pytest -q --workers $(JOBS) $(ARGS)
	$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage html -q -i -d .coverage-page
	$(BIN)/python -m coverage report -i --skip-covered --sort=cover

# README's first commands as they are written, in a copy of the project; `make test` has a short walk.
newcomer: $(VENV)/.dev ## Walk through README's first commands in a terminal of 80 columns with a clean home
	WIREGLOT_WHOLE=1 $(BIN)/python -m pytest -q tests/newcomer

# Hours of a machine and real clients: run before a larger change is called done.
full: servers promtool chromium .client-programs page-check lint types contracts docs-check ## Everything: all checks, all tests, every client, kills and foreign values
	WIREGLOT_FLEET=1 WIREGLOT_BROWSER=1 WIREGLOT_WHOLE=1 $(MAKE) test
	$(MAKE) guard ARGS="--required --tolerance 0.1"
	$(MAKE) site demo packages sbom container lab contract clients docs-blocks
	$(MAKE) judges ARGS=real-model

newest: ## Run all tests with the newest versions of everything, in .venv-newest
	rm -rf .venv-newest
	$(MAKE) VENV=.venv-newest CONSTRAINTS= test

# With the oldest Python: what is released for it is released for the newer ones too, but not the other way round.
pins: ## Rewrite constraints.txt with the newest versions (PYTHON=python3.11)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11) and "make pins needs Python 3.11: PYTHON=python3.11")'
	rm -rf .venv-pins
	$(MAKE) VENV=.venv-pins CONSTRAINTS= .venv-pins/.pins
	{ sed '/^[^#]/,$$d' constraints.txt; cat .venv-pins/.pins; } > .venv-pins/constraints.txt
	cp .venv-pins/constraints.txt constraints.txt
	rm -rf .venv-pins

# The build backend is no dependency of the package, and `editables` is what it asks for at `pip install -e`.
$(VENV)/.pins: $(VENV)/.dev $(VENV)/.site
	$(PIP) hatchling editables
	$(BIN)/python -m pip freeze --exclude-editable --exclude setuptools | LC_ALL=C sort -f > $@

lock: $(BIN)/python ## Rewrite requirements.lock: what runs, each file by its hash, at the versions of constraints.txt
	$(PIP) uv
	@sed '/^[^#]/,$$d' requirements.lock > .lock.new
	$(BIN)/uv pip compile -q pyproject.toml --extra fleet --extra login --extra web --extra vertex --extra bedrock -c constraints.txt --universal --python-version 3.11 \
		--generate-hashes --no-annotate --no-header >> .lock.new
	mv .lock.new requirements.lock

# The registry's package is read by a Python of its own: nothing here depends on it, or on what it depends on.
prices: $(VENV)/.dev ## Update the catalog's prices from the newest genai-prices, and say what changed
	rm -rf .venv-prices && $(PYTHON) -m venv .venv-prices
	.venv-prices/bin/python -m pip install -q --disable-pip-version-check --root-user-action=ignore genai-prices
	.venv-prices/bin/python tools/prices/registry_dump.py > .venv-prices/dump.json
	$(BIN)/python -m tools.prices .venv-prices/dump.json
	rm -rf .venv-prices

# A real gateway and real clients in real terminals; pyte, which plays the terminal, is needed for nothing else.
recording: $(VENV)/.dev ## Record the README's terminal again: docs/pictures/recording.svg
	$(PIP) pyte
	$(BIN)/python -m clients.install 'claude-code|gemini-cli'
	$(BIN)/python -m tools.recording $(ARGS)

# The lines of the Dockerfile and the files of deploy/, by docker or podman where one answers.
container: $(VENV)/.dev .nginx ## Build the container and try it; without an engine in a root directory of its own (as root)
	@[ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || command -v ip >/dev/null \
		|| { apt-get update -qq && $(INSTALL) iproute2 >/dev/null; }
	$(BIN)/python -m proofs.container $(ARGS)

wheel: $(VENV)/.dev ## Build wheel and sdist twice and compare: dist/
	$(BIN)/python -m tools.release.wheel

packages: wheel ## Install the wheel into clean environments of every Python that is here, with pip, pipx and uvx
	$(BIN)/python -m tools.release.installs $(ARGS)

# Nothing is changed without ARGS=--write, and nothing is pushed.
release: $(VENV)/.dev ## Make a release, or show what it would be (VERSION=1.2.3, ARGS=--write)
	$(BIN)/python -m tools.release.release $(VERSION) $(ARGS)

# An environment with the locked packages, the wheel and nothing else is what the bill describes.
artifacts: $(VENV)/.dev ## Pack the Helm chart, the context of the image, a bill of materials, and the core's wheel: dist/
	$(BIN)/python -m tools.release.artifacts
	$(BIN)/python -m tools.release.wheel --core
	$(BIN)/python -m tools.release.core_alone

sbom: wheel ## Write a bill of materials (CycloneDX) of what the lock installs: dist/wireglot.cdx.json
	rm -rf .venv-sbom && $(PYTHON) -m venv .venv-sbom
	.venv-sbom/bin/python -m pip install -q --disable-pip-version-check --require-hashes --only-binary :all: -r requirements.lock
	.venv-sbom/bin/python -m pip install -q --disable-pip-version-check --no-deps dist/wireglot-*.whl
	$(PIP) cyclonedx-bom
	$(BIN)/python -m tools.release.sbom --python .venv-sbom/bin/python
	rm -rf .venv-sbom

# The tests start private servers of their own; this only sees to it that there is something to start.
servers: ## Install PostgreSQL, Redis and PgBouncer where they are missing (on Debian, as root)
	tools/install_servers.sh

# Where it is there, the tests ask it about the dashboard and the alerts, and run its server beside a gateway.
promtool: ## Install Prometheus where it is missing (on Debian, as root), for the tests of the dashboard and the alerts
	@command -v promtool >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null \
		|| { apt-get update -qq && $(INSTALL) prometheus >/dev/null; } || true

# The page is built with Node 20 or newer and npm, by those who change it; what is built is committed, and shipped.
page/node_modules: page/package-lock.json
	@command -v npm >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null \
		|| { apt-get update -qq && $(INSTALL) nodejs npm >/dev/null; } || true
	cd page && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

page: page/node_modules ## Build the inspector's page into src/wireglot/gateway/inspector/assets (needs Node with npm)
	cd page && npm run --silent types && npm run --silent build

page-check: page/node_modules ## Check the page's TypeScript: linter, types, unit tests, and that what is shipped is what is built
	cd page && npm run --silent lint && npm run --silent types && npm run --silent test -- --test-reporter=dot && npm run --silent check

# Where it is there, the tests look at the page with it: `make test` with its engine alone, `make full` with the browser.
chromium: ## Install Chromium where it is missing (on Debian, as root), for the tests of the inspector's page
	@{ command -v chromium && command -v chromium-headless-shell; } >/dev/null || [ "$$(id -u)" != 0 ] \
		|| ! command -v apt-get >/dev/null \
		|| { apt-get update -qq && $(INSTALL) chromium >/dev/null && $(INSTALL) chromium-headless-shell >/dev/null; } || true

page-test: $(VENV)/.dev chromium ## Try all of the inspector's page in a real browser (ARGS="-k large --log-cli-level=INFO")
	WIREGLOT_BROWSER=1 WIREGLOT_WHOLE=1 $(BIN)/python -m pytest -q tests/page $(ARGS)

page-pictures: $(VENV)/.dev chromium ## Take the pictures of docs/inspector.md again (needs pngquant)
	$(BIN)/python -m tools.page_pictures

test-fleet: $(VENV)/.dev servers ## Run the tests that need real PostgreSQL, Redis and PgBouncer servers (installs them on Debian as root)
	WIREGLOT_FLEET=1 WIREGLOT_WHOLE=1 $(BIN)/python -m pytest -q --workers $(JOBS) $(wildcard tests/stores tests/fleet tests/upgrade)
	! command -v valkey-server >/dev/null || WIREGLOT_FLEET=1 WIREGLOT_REDIS_SERVER=valkey-server \
		$(BIN)/python -m pytest -q --workers $(JOBS) -k redis tests/stores tests/fleet

lint: $(VENV)/.dev ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.dev ## Format the code and fix what can be fixed by itself
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev ## Check types
	$(BIN)/mypy src tests clients proofs tools

contracts: $(VENV)/.dev ## Check who may import whom
	$(BIN)/lint-imports --no-cache

docs: $(VENV)/.dev ## Regenerate the generated pages
	$(BIN)/python -m tools.generate_docs

docs-check: $(VENV)/.dev ## Fail if a generated page is out of date, or a table or list of any page is torn
	$(BIN)/python -m tools.generate_docs --check

# Each page in a network of its own, where the vendors' hosts are stood in for; as root, or where users may have
# namespaces. `make test` runs the quick ones.
docs-blocks: $(VENV)/.dev ## Run every command and code block of the pages (ARGS=--list: which are not, and why)
	$(BIN)/python -m proofs.docs_blocks $(ARGS)

# What builds it is not among the development tools: nobody who changes code needs it.
$(VENV)/.site: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) -e '.[site]'
	@touch $(VENV)/.package $@

site: $(VENV)/.site ## Build the documentation as a static site with search: site/index.html
	rm -rf site
	$(BIN)/python -m tools.site site

# nginx is the yardstick. Where it cannot be installed the figures come without ratios.
.nginx:
	@command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null \
		|| { apt-get update -qq && $(INSTALL) nginx-light >/dev/null; } || true

bench: $(VENV)/.dev .nginx ## Measure the gateway beside nginx (ARGS=--quick, --only A,DP, --write docs/performance.md)
	$(BIN)/python -m proofs.bench.gateway $(ARGS)

bench-peers: $(VENV)/.dev .nginx ## Measure six other gateways, or those of a recipe, in speed and correctness (ARGS="--recipe FILE.toml", --hour)
	$(BIN)/python -m proofs.bench.peers $(ARGS)

probe-peers: $(VENV)/.dev ## Put six other gateways, or those of a recipe, to the probe (ARGS="--recipe FILE.toml")
	$(BIN)/python -m proofs.boards $(ARGS)
	$(BIN)/python -m tools.generate_docs

capacity: $(VENV)/.dev ## Plan workers and machines from the figures of a run (ARGS="--price 0.04")
	$(BIN)/python -m proofs.bench.capacity docs/figures/bench.json --write docs/capacity.md $(ARGS)

bench-core: $(VENV)/.dev ## Measure translation against a plain msgspec round trip
	$(BIN)/python -m proofs.bench.core $(ARGS)

# Callgrind counts instructions, on a busy machine as on an idle one. The tolerance of 5 % is over what is left between runs
# of the same tree on two busy cores, with fixed hashes and addresses, no collector and timers that wait (proofs/guard/serve.py):
# whole requests came within 0.9 %, streams within 1.3 %, an event of the core within 0.4 %. An event in the gateway is a
# difference of two streams and moved by up to 16 % where busy cores had two read together: 15 % are allowed for it.
# Other processors add nothing: valgrind shows programs one of its own. Calls and files came within 0.7 %: 3 % are allowed.
.valgrind:
	@command -v valgrind >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null \
		|| { apt-get update -qq && $(INSTALL) valgrind >/dev/null; } || true

guard: $(VENV)/.dev .valgrind ## Fail where a request, a stream or an event takes more instructions than recorded (ARGS="--only 'an event'")
	$(BIN)/python -m proofs.guard $(ARGS)

guard-update: $(VENV)/.dev .valgrind ## Record how many instructions requests, streams and events take now
	$(BIN)/python -m proofs.guard --update

leaks: $(VENV)/.dev ## Look for leaks under mixed traffic (ARGS="--minutes 60")
	$(BIN)/python -m proofs.bench.soak $(ARGS)

# Each line of docs/reliability.md is one command with one result file. What holds, and covers nothing that has changed since, is not run again.
lab: $(VENV)/.dev servers ## Make the proofs of docs/reliability.md, but for the long ones (ARGS="--only cuts,drain")
	$(BIN)/python -m proofs.lab.proofs --tier lab $(ARGS)

soak: $(VENV)/.dev servers ## Make the long proofs: hours of fuzzing and of open streams (ARGS="--only streams")
	$(BIN)/python -m proofs.lab.proofs --tier soak $(ARGS)

# Recordings are no part of the project: figures come where there are some.
corpus: $(VENV)/.dev ## Measure recorded traffic in all directions (CORPUS=folder, ARGS="--limit 150")
	$(BIN)/python -m proofs.fidelity.corpus $(CORPUS) $(ARGS)

# Foreign judges run in environments of their own, below .judges: nothing here depends on them.
judges: $(VENV)/.dev ## Run the test suites of others against the gateway and record the outcome (ARGS=schemas)
	$(BIN)/python -m proofs.judges $(ARGS); status=$$?; $(BIN)/python -m tools.generate_docs && exit $$status

mutants: $(VENV)/.dev ## Make deliberate defects and count those the tests notice (ARGS="--count 30 --only wire")
	$(BIN)/python -m proofs.mutants $(ARGS)

# A seed that breaks a law is printed with the command that replays it. `make test` runs twenty-four, `make full` a hundred.
SEEDS ?= 1000
sim: $(VENV)/.dev ## Run the whole gateway on a simulated machine, seed by seed (SEEDS=10000, ARGS="--first 5000")
	$(BIN)/python -m proofs.simulation --seeds $(SEEDS) --jobs $(JOBS) $(ARGS)

# Run it after every step of a change that must keep what the gateway does. Both sides run at once, each on real sockets.
BASE ?= HEAD
same: $(VENV)/.dev ## Compare what the gateway of a commit does and what this one does (BASE=main, ARGS="--show NAME")
	$(BIN)/python -m proofs.comparison $(BASE) $(ARGS)

rolling: $(VENV)/.dev servers ## Upgrade a loaded fleet machine by machine, and back (ARGS="--old CHECKOUT --old-python PYTHON")
	$(BIN)/python -m proofs.lab.rolling $(ARGS)

# Needs `claude` (on PATH, or by `python -m clients.install claude-code`) and PostgreSQL; without them it is skipped.
contract: $(VENV)/.dev ## Compare our answers with those of Claude Code's reference gateway, `claude gateway` (ARGS="--only Budgets")
	$(BIN)/python -m proofs.contract $(ARGS); status=$$?; $(BIN)/python -m tools.generate_docs && exit $$status

# Costs money: a dollar at most, unless ARGS says otherwise. Recordings and report go to .live/, without the keys.
live: $(VENV)/.dev ## Call the vendors whose keys are in the environment, and compare them with the scripted upstream (ARGS="--limit 0.20")
	$(BIN)/python -m proofs.live $(ARGS)

# Needs Node 20 or newer with npm; the clients themselves go to clients/.installed.
.client-programs: $(VENV)/.package
	$(BIN)/python -m clients.install

clients: .client-programs ## Run Claude Code, Codex, Gemini CLI and others through the gateway (ARGS="--only codex")
	$(BIN)/python -m clients.run $(ARGS)
	$(BIN)/python -m clients.launched $(ARGS)
	$(BIN)/python -m clients.searches $(ARGS)

# The newest releases have a folder of their own: those of `make clients` are the pinned ones.
watch: $(VENV)/.dev ## Run the newest release of every client and report what it sends that is new (ARGS=--write: record it)
	CLIENTS_DIR=$(CURDIR)/clients/.newest $(BIN)/python -m clients.watch $(ARGS)

clean: ## Remove the environment, caches and build output
	rm -rf .coverage .coverage-page $(VENV) .venv-newest .venv-pins .venv-sbom .venv-prices .judges build dist site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis page/node_modules
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
