# Each goal makes its own virtual environment, with the exact versions of constraints.txt.

PYTHON ?= python3
VENV ?= .venv
PROFILE ?= full
ARGS ?=
OUT ?= _build/html
PORT ?= 8000
# The smaller, CPU-only wheels of torch: TORCH_INDEX=https://download.pytorch.org/whl/cpu
TORCH_INDEX ?=

BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help book check serve test format clean

help: ## show this list
	@echo "usage: make GOAL [VARIABLE=value ...]"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-14s %s\n", $$1, $$2}'
	@echo "variables of make book: PROFILE=quick|stage2|full, OUT=folder, ARGS=\"-p seeds=32 --jobs 4\""
	@echo "smaller, CPU-only torch: TORCH_INDEX=https://download.pytorch.org/whl/cpu"

book: $(VENV)/.book ## train what is missing and build the report, _build/html/index.html
	@$(BIN)/msstab build --profile "$(PROFILE)" --out "$(OUT)" $(ARGS)

check: $(VENV)/.book ## check the built report: its links, its numbers' origin, its report file
	@$(BIN)/msstab check "$(OUT)"

serve: $(VENV)/.book ## show the built report on http://localhost:8000
	@test -f "$(OUT)/index.html" || { echo "There is no book in $(OUT) yet: run make book." >&2; exit 2; }
	@$(BIN)/python -m http.server --bind localhost --directory "$(OUT)" $(PORT)

test: $(VENV)/.test ## lint, types, and every test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy msstab tests benchmarks
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/nbqa mypy notebooks
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses auto --dist loadfile

format: $(VENV)/.test ## format the code, and repair what lint can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## remove everything that was built, the environment and the cache of trials
	rm -rf _build .cache book/notebooks book/_results "$(VENV)" *.egg-info

# The stamp is written last, so an interrupted installation is never taken for a finished one;
# `.installing` says that one was interrupted, and that its leftovers can't be trusted.
$(VENV)/.book: EXTRAS := book
$(VENV)/.test: EXTRAS := book,test
$(VENV)/.book $(VENV)/.test: pyproject.toml constraints.txt
	@command -v "$(PYTHON)" > /dev/null || { echo "$(PYTHON) is not on the PATH: install Python 3.11 or later, or say which to use, for instance make PYTHON=python3.12" >&2; exit 2; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "msstab needs Python 3.11 or later, and $(PYTHON) is $$("$(PYTHON)" -V 2>&1): say which to use, for instance make PYTHON=python3.12" >&2; exit 2; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2> /dev/null || { echo "$(PYTHON) cannot make virtual environments: on Debian and Ubuntu, install python3-venv" >&2; exit 2; }
	@test ! -e "$(VENV)/.installing" || rm -rf "$(VENV)"
	@"$(BIN)/python" -m pip --version > /dev/null 2>&1 || "$(PYTHON)" -m venv --clear "$(VENV)"
	@touch "$(VENV)/.installing"
	@echo "installing msstab[$(EXTRAS)] into $(VENV); the first time, this downloads torch"
	@"$(BIN)/python" -m pip install --quiet --disable-pip-version-check --constraint constraints.txt $(if $(TORCH_INDEX),--extra-index-url "$(TORCH_INDEX)") --editable ".[$(EXTRAS)]"
	@rm -f "$(VENV)/.installing"
	@touch "$@"
