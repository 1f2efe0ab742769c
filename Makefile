# Everything runs in .venv, which is made on first use. A stamp per set of packages keeps a second run from
# installing again; a stamp is older than pyproject.toml when the requirements may have changed.

# The first Python that is new enough; `make PYTHON=/path/to/python test` chooses another.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p && break; done)
VENV := .venv
RUN := $(VENV)/bin/python
PIP := $(RUN) -m pip install --quiet --disable-pip-version-check
# The tests use two processes; `make test PYTEST_ARGS='-n 0 -k sharing'` runs some of them in one.
PYTEST_ARGS ?= -n 2

.PHONY: help demo test examples lint benchmark clean
.NOTPARALLEL:

help:
	@echo 'make demo       Hartree-Fock: derive the gradient, compare it with PySCF, minimise the energy'
	@echo 'make test       the test suite'
	@echo 'make examples   every script in examples/'
	@echo 'make lint       ruff and mypy'
	@echo 'make benchmark  import and derivation times, and their growth with depth'
	@echo 'make clean      remove .venv and caches'

demo: $(VENV)/.demo
	$(RUN) examples/hartree_fock.py

test: $(VENV)/.test
	$(RUN) -m pytest $(PYTEST_ARGS)

examples: $(VENV)/.demo
	@set -e; for example in examples/*.py; do echo "== $$example"; $(RUN) "$$example"; done

lint: $(VENV)/.lint
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

benchmark: $(VENV)/.demo
	$(RUN) benchmarks/startup.py
	$(RUN) benchmarks/depth.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUN):
	@test -n "$(PYTHON)" || { echo 'combdiff needs Python 3.11 or newer (make PYTHON=/path/to/python …)' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(RUN)
	$(PIP) -e '.[demo]'
	@touch $@

$(VENV)/.test: pyproject.toml | $(RUN)
	$(PIP) -e '.[test,demo,testing]'
	@touch $@

$(VENV)/.lint: pyproject.toml | $(RUN)
	$(PIP) -e '.[lint,test,demo,testing]'
	@touch $@
