# One line a target. The two that a newcomer needs are `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/ready
FOR_DEMO := $(VENV)/demo

# Some images set it. Then each of the thousands of processes that the tests start would compile torch's Python again,
# which takes as long as its import.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo check test test-slow test-all test-surface test-libraries gpu-test gpu-bench docs site site-check lint format asan ubsan tsan leaks \
	perturb fuzz soak coverage matrix one-binary wheel clean

demo: $(FOR_DEMO)
	@PYTHONPATH=docs $(PY) -P -m experiments.lltm.demo

# Files go to workers in the order in which tests/conftest.py sorts them: what takes long begins first. There is one
# worker more than processors, because tests wait for processes that they start, and for one another's builds.
# The time limit is for tests that hang. The first test that needs the projects of tests/projects waits until all are
# compiled: 7 min on 2 cores, and twice as long on busy ones.
# A worker that crashes is not replaced: pytest-xdist would wait for ever for the rest of its file.
WORKERS = $$($(PY) -c "import os; print(min(os.cpu_count(), 8) + 1)")
PYTEST = $(PY) -m pytest --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder --max-worker-restart=0 \
	--timeout=1800

check: $(READY)
	$(PYTEST) -m "not slow and not extended and not long"

test: $(READY)
	$(PYTEST) --durations=20 -m "not slow and not extended"

test-slow: $(READY)
	$(PYTEST) --durations=20 -m "slow or extended"

test-all: test test-slow

test-surface: $(READY)
	INTEROP_SURFACE=all $(PY) -m pytest -s tests/cython/test_surface.py tests/operators/test_operators.py

# What calls compiled packages of others, which are fetched.
test-libraries: $(READY)
	$(PY) -m pip install --quiet --requirement requirements/libraries.txt
	$(PYTEST) tests/bridges/test_library_calls.py tests/bridges/test_numba.py tests/docs/test_libraries_guide.py

# On a machine with a GPU, in the environment of PYTHON as it is: nothing is fetched.
HERE := $(PYTHON) -m pip install --quiet --no-build-isolation --no-deps --no-index --editable .

gpu-test:
	$(HERE) && $(PYTHON) -m pytest -m cuda --require-cuda tests/bridges tests/cuda

gpu-bench:
	$(HERE) && $(PYTHON) -m interop experiments lltm-cuda --record

# The site, and a check of it if Chromium and axe-core are there; nothing is fetched.
docs: site
	$(PY) tools/site_check.py --if-possible

# Everything is read again, so that no warning is lost.
site: $(READY)
	$(PY) -m sphinx --fresh-env --fail-on-warning --keep-going --nitpicky --quiet docs build/docs

# In Chromium, without a window, and with axe-core, which npm fetches: widths, contrast, keyboard, search.
site-check: site
	npm install --silent --no-audit --no-fund --prefix build/axe axe-core@4.14.1
	$(PY) tools/site_check.py

lint: $(READY)
	$(PY) tools/lint.py

format: $(READY)
	$(PY) tools/lint.py --fix

asan ubsan tsan leaks perturb: $(READY)
	$(PY) tests/checkers/run.py $@

# What reads untrusted input, for SECONDS each; needs clang. See tests/fuzz/run.py.
SECONDS := 60

fuzz: $(READY)
	$(PY) -m pip install --quiet atheris==3.0.0
	$(PY) tests/fuzz/run.py --seconds $(SECONDS)

# Eight threads over converters, `load` and operators for SECONDS; also MALLOC_PERTURB_=165 make soak.
soak: $(READY)
	$(PY) tests/soak/run.py --seconds $(SECONDS)

# Of Python, also in the processes that tests start; TESTS=tests/doctor for those of one room.
TESTS := tests

coverage: $(READY)
	$(PY) -m coverage erase
	-$(PY) -m coverage run -m pytest --timeout=900 $(TESTS)
	$(PY) -m coverage combine --quiet && $(PY) -m coverage report

# Before a release; see tools/matrix.py for what a stack is. What comes after -- in STACKS is for pytest.
STACKS := --help

matrix: $(READY)
	$(PY) tools/matrix.py $(STACKS)

# The same files under the torch and CPython of each interpreter.
PYTHONS := --help

one-binary: $(READY)
	$(PY) tools/one_binary.py $(PYTHONS)

wheel: $(READY)
	$(PY) -m build --no-isolation

clean:
	rm -rf build dist *.egg-info

# The environment, and the package built in it: again when what it is built from changes.
BUILT_FROM := $(shell find csrc pxd stable interop/*.pyx interop/abi interop/build interop/codegen interop/cython \
	interop/errors.py interop/paths.py interop/stable_abi.py interop/toolchain.py -type f ! -name '*.pyc' ! -name '*.a')

$(READY): $(wildcard requirements/*.txt) setup.py pyproject.toml $(BUILT_FROM)
	@$(PYTHON) tools/set_up.py $(VENV) requirements/dev.txt
	@touch $(FOR_DEMO) $@

# The same with fewer packages; what is missing for the other targets is added when one of them is called.
$(FOR_DEMO): requirements/build.txt requirements/demo.txt setup.py pyproject.toml $(BUILT_FROM)
	@$(PYTHON) tools/set_up.py $(VENV) requirements/demo.txt
	@touch $@
