# Every target sets up what it needs: a virtual environment in .venv with the package
# built from this folder. Requires Python >= 3.11, a C compiler and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# for tools that start other tools by name
WITH_BIN := PATH="$(CURDIR)/$(BIN):$$PATH"
SOURCES := $(wildcard meson.build meson.options pyproject.toml docs/description.md \
    src/cdsk/* src/cdsk/*/*)

.PHONY: demo test test-slow test-random test-checks test-clang test-oldest test-newest coverage build-sanitized \
    sanitize fuzz fuzz-sanitize arm64 lint bench bench-large bench-dask bench-paper asv \
    asv-compare bench-check docs wheels clean
.DELETE_ON_ERROR:

demo: $(VENV)/installed  ## cluster bundled data, print a table, write demo.png
	$(BIN)/cdsk demo -o demo.png

# Two processes, one test file at a time: most tests use a single core.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile

test: $(VENV)/tools  ## run the fast tests against the installed package
	$(PYTEST) -m "not slow" $(TEST_ARGS)

test-slow: $(VENV)/tools  ## run the tests of larger problems
	$(PYTEST) -m slow

# The header shows the seed; TEST_ARGS="--randomly-seed=SEED" repeats an order.
test-random: $(VENV)/tools  ## run the fast tests in a random order
	$(PYTEST) -p randomly -m "not slow" $(TEST_ARGS)

WARNINGS_ARE_ERRORS := -Csetup-args=-Dwerror=true

# Tests that call compiled code directly, and tests of whole fits.
test-checks: ## build again with bounds checks and run the tests of compiled code
	$(MAKE) test VENV=.venv-checks \
	    BUILD_OPTIONS="-Csetup-args=-Dchecks=true $(WARNINGS_ARE_ERRORS)" \
	    TEST_ARGS="$(CORE_TESTS) $(WHOLE_TESTS)"

test-clang:  ## build with clang, warnings are errors, and run the fast tests
	$(MAKE) test CC=clang VENV=.venv-clang BUILD_OPTIONS="$(WARNINGS_ARE_ERRORS)"

# Pre-releases, and nightly builds of what has some (SPEC 4).
NIGHTLY := https://pypi.anaconda.org/scientific-python-nightly-wheels/simple

test-newest:  ## run the fast tests with pre-releases of dependencies
	$(MAKE) .venv-newest/tools VENV=.venv-newest
	.venv-newest/bin/python -m pip --quiet install --upgrade --pre \
	    --extra-index-url $(NIGHTLY) numpy scipy scikit-learn
	.venv-newest/bin/python -m pytest -n 2 --dist loadfile -m "not slow" $(TEST_ARGS)

coverage: $(VENV)/tools  ## print the branch coverage of the fast tests, lowest first
	$(PYTEST) -m "not slow" --cov --cov-report= $(TEST_ARGS)
	$(BIN)/coverage report

# The lower bounds of pyproject.toml, including those of test and build tools.
OLDEST := .venv-oldest

test-oldest: $(OLDEST)/installed  ## run the fast tests with the oldest supported dependencies
	$(OLDEST)/bin/python -m pytest -n 2 --dist loadfile -m "not slow" $(TEST_ARGS)

# Core tests with the address and undefined-behavior sanitizers. Leaks are not checked: the
# interpreter itself has some.
CORE_TESTS := $(addprefix tests/test_,$(addsuffix .py,banded compiled_loops dense eigen embedding \
    exported_names graph indefinite kernel kmeans layout low_rank multilevel neighbors products \
    signals smo spanning_tree sparse votes weights))
WHOLE_TESTS := $(addprefix tests/test_,$(addsuffix .py,blocks_estimator blocks_gram \
    blocks_landmarks candidates estimator n_clusters noise points prediction representation \
    simd sparse_rows spectral))
SANITIZE_OPTIONS := -Csetup-args=-Db_sanitize=address,undefined \
    -Csetup-args=-Db_lundef=false -Csetup-args=-Dbuildtype=debugoptimized

SANITIZED := ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 \
    LD_PRELOAD="$$($(or $(CC),cc) -print-file-name=libasan.so) \
    $$($(or $(CC),cc) -print-file-name=libubsan.so)" .venv-sanitize/bin/python

build-sanitized:
	$(MAKE) .venv-sanitize/tools VENV=.venv-sanitize \
	    BUILD_OPTIONS="$(SANITIZE_OPTIONS)"

sanitize: build-sanitized
	$(SANITIZED) -m pytest -q -p no:cacheprovider $(CORE_TESTS)

# Of inner loops: they start no other programs, and need no further packages.
ARM64_TESTS := $(addprefix tests/test_,$(addsuffix .py,products kernel graph dense weights \
    kmeans smo))

arm64: $(VENV)/tools  ## cross build for arm64, and tests of inner loops under qemu (Debian)
	$(WITH_BIN) tools/arm64.sh -m "not slow" $(ARM64_TESTS)

# Without SEED, a random one. The report says how to repeat a failure.
SECONDS := 60
FUZZ := -m benchmarks.fuzz --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

fuzz: $(VENV)/tools  ## fit random data with random settings for SECONDS=60
	$(BIN)/python $(FUZZ)

fuzz-sanitize: build-sanitized
	$(SANITIZED) $(FUZZ) --limit 200

lint: $(VENV)/tools
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(WITH_BIN) cython-lint src/cdsk examples
	$(BIN)/mypy
	$(BIN)/zizmor --offline --quiet .github
	git ls-files | xargs $(BIN)/codespell
	$(BIN)/rumdl check --quiet .

bench: $(VENV)/tools  ## compare with scikit-learn and libsvm: benchmarks/peers/results (15 minutes)
	$(BIN)/python -m benchmarks.peers.compare $(ARGS)

# ARGS="--data DATA": without it, lines that need data files are skipped
bench-large: $(VENV)/tools  ## measure large fits and their peers: docs/results (two hours)
	$(BIN)/python -m benchmarks.large $(ARGS)

bench-dask: $(VENV)/tools  ## measure cdsk.dask on local workers (an hour; ARGS="--sizes 100000")
	$(BIN)/python -m benchmarks.dask --out docs/results $(ARGS)

# ARGS="--data DATA": folder of the paper's data sets. An interrupted run is continued.
bench-paper: $(VENV)/tools  ## reproduce the paper's tables: build/paper (hours)
	$(BIN)/python -m benchmarks.paper $(ARGS)

ASV_CONFIG := benchmarks/asv/asv.conf.json

asv: $(VENV)/tools  ## run every asv benchmark once in this environment (15 minutes)
	$(WITH_BIN) asv machine --yes --config $(ASV_CONFIG)
	$(WITH_BIN) asv run --quick --show-stderr --config $(ASV_CONFIG) -E existing:same

# Both commits are built and measured in turn, on this machine, which should be idle.
BASE := HEAD~1

asv-compare: $(VENV)/tools  ## fail if a stage is 20 % slower than in BASE, a commit (an hour)
	$(WITH_BIN) asv machine --yes --config $(ASV_CONFIG)
	$(WITH_BIN) asv continuous --factor 1.2 --interleave-rounds --split --show-stderr \
	    --config $(ASV_CONFIG) $(ARGS) \
	    $$(git rev-parse $(BASE)) $$(git rev-parse HEAD)

bench-check: $(VENV)/tools  ## check that the benchmarks run
	$(WITH_BIN) asv check --config $(ASV_CONFIG) -E existing:same
	$(BIN)/python -m benchmarks.peers.compare --quick --out build/bench-check
	$(BIN)/python -m benchmarks.large --quick --out build/bench-check $(ARGS)

# Of the gallery, only programs that have changed are run.
docs: $(VENV)/docs  ## build the documentation in build/docs; warnings are errors
	rm -rf build/docs
	$(BIN)/sphinx-build --fresh-env --fail-on-warning --keep-going --quiet \
	    $(DOCS_OPTIONS) -d build/doctrees docs build/docs
	$(BIN)/python docs/check_links.py build/docs

# From the last commit, to dist, with virtual environments in build/wheels.
wheels:  ## build and check sdist and wheel; run the fast tests on every Python found
	$(PYTHON) tools/wheels.py $(ARGS)

$(VENV)/created:
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --upgrade "pip>=25.1"
	touch $@

$(VENV)/installed: $(VENV)/created $(SOURCES)
	$(PIP) install $(BUILD_OPTIONS) ".[plot]"
	touch $@

# Tools that the demo does not need. The package is updated first, but a change of the
# package does not install the tools again.
$(VENV)/tools: pyproject.toml | $(VENV)/installed
	$(PIP) install --group test --group lint --group bench
	touch $@

$(OLDEST)/tools: pyproject.toml
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -m pip --quiet install --upgrade "pip>=25.1" uv
	$(OLDEST)/bin/uv pip compile --quiet --python $(OLDEST)/bin/python \
	    --resolution lowest-direct --extra plot --group test pyproject.toml \
	    --output-file $(OLDEST)/requirements.txt
	$(OLDEST)/bin/python -m pip --quiet install --requirement $(OLDEST)/requirements.txt
	touch $@

$(OLDEST)/installed: $(OLDEST)/tools $(SOURCES)
	PATH="$(CURDIR)/$(OLDEST)/bin:$$PATH" $(OLDEST)/bin/python -m pip --quiet install \
	    --no-deps --no-build-isolation .
	touch $@

$(VENV)/docs: pyproject.toml | $(VENV)/tools
	$(PIP) install --group docs
	touch $@

clean:
	rm -rf .venv .venv-checks .venv-clang .venv-newest .venv-oldest .venv-sanitize build dist demo.png \
	    docs/api/generated docs/api/used docs/gallery
