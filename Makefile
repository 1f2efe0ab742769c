# Everything runs in .venv, which is made on first use. A stamp per set of packages keeps a second run from
# installing again; a stamp is older than pyproject.toml when the requirements may have changed.

# The first Python that is new enough; `make PYTHON=/path/to/python test` chooses another.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
VENV := .venv
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check
# The tests use two processes; `make test PYTEST_ARGS='-n 0 -k sharing'` runs some of them in one. Each process takes
# one half of the files in order, so that what a file derives once serves its other tests, and then helps the other.
PYTEST_ARGS ?= -n 2 --dist worksteal
# The build of PyTorch for `make test-all`; give another one where this one brings libraries for GPUs along.
TORCH ?= torch==2.13.0

# .venv is filled without bytecode; what the first process compiles is to serve the others.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-all test-page docs mutants fuzz examples lint benchmark clean
.NOTPARALLEL:

help:
	@echo 'make demo       Hartree-Fock: derive the gradient, compare it with PySCF, minimise the energy'
	@echo 'make test       the test suite: about four minutes on two cores, 0.9 GB in .venv'
	@echo 'make test-all   all of it, with PyTorch, PySCF, scikit-learn and Matplotlib, too: half an hour, 2 GB'
	@echo 'make test-page  the page that `combdiff serve` shows, in a headless Chromium'
	@echo 'make docs       the site of the documents, in site/'
	@echo 'make mutants    whether the tests find 47 breaks made by hand: about fifteen minutes'
	@echo 'make fuzz       new random programs, texts and rule files for SECONDS=600'
	@echo 'make examples   every script in examples/'
	@echo 'make lint       ruff and mypy'
	@echo 'make benchmark  import and derivation times, and their growth with depth'
	@echo 'make clean      remove .venv and caches'

demo: $(VENV)/.demo
	$(RUN) examples/hartree_fock.py

test: $(VENV)/.test
	@echo '== the test suite: about four minutes on two cores; each line ends with the part that is done'
	$(RUN) -m pytest -m 'not thorough' $(PYTEST_ARGS)

test-all: $(VENV)/.test-all
	@echo '== the whole test suite with every library: half an hour on two cores'
	$(RUN) -m pytest $(PYTEST_ARGS)

examples: $(VENV)/.demo
	@set -e; for example in examples/*.py; do echo "== $$example"; $(RUN) "$$example"; done

lint: $(VENV)/.lint
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

test-page: $(VENV)/.test-page
	@echo '== the page in a headless Chromium (apt-get install chromium chromium-driver)'
	$(RUN) -m pytest -n 0 tests/page/chromium.py

docs: $(VENV)/.docs
	@echo '== the site of the documents, in site/'
	$(RUN) -m mkdocs build --quiet --strict

fuzz: $(VENV)/.test
	$(RUN) tests/fuzz.py $(or $(SECONDS),600)

mutants: $(VENV)/.test
	@echo '== 47 breaks, one at a time; about fifteen minutes'
	$(RUN) tests/mutants.py

benchmark: $(VENV)/.demo
	$(RUN) benchmarks/startup.py
	$(RUN) benchmarks/depth.py

clean:
	rm -rf $(VENV) build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUN):
	@test -n "$(PYTHON)" || { echo 'combdiff needs Python 3.11 or newer (make PYTHON=/path/to/python …)' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(RUN)
	@echo '== installing PySCF, SciPy and scikit-learn in $(VENV): 0.8 GB, once; one to three minutes'
	$(PIP) -e '.[demo]'
	@touch $@

$(VENV)/.test: pyproject.toml | $(RUN)
	@echo '== installing what the tests need in $(VENV): 0.9 GB, once; one to three minutes'
	$(PIP) --no-compile -e '.[test]'  # Python compiles what is imported; all of it is 0.1 GB more
	@$(RUN) -c 'import dask.array, hypothesis, jax.numpy, scipy.optimize, scipy.signal, scipy.stats'  # for both processes
	@touch $@

$(VENV)/.test-all: pyproject.toml Makefile | $(RUN)
	@echo '== installing PyTorch, PySCF, scikit-learn and Matplotlib as well: 1 GB more, once; a few minutes'
	$(PIP) -e '.[test-all]' '$(TORCH)'
	@touch $@

$(VENV)/.test-page: pyproject.toml | $(RUN)
	$(PIP) --no-compile -e '.[test-page]'
	@touch $@

$(VENV)/.docs: pyproject.toml | $(RUN)
	$(PIP) --no-compile -e '.[docs]'
	@touch $@

$(VENV)/.lint: pyproject.toml | $(RUN)
	$(PIP) -e '.[lint,test-all]' '$(TORCH)'
	@touch $@
