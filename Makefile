# demo · test · check · docs · bench · engines · gpu: the README and CI call these and nothing else.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check -q
EXTRAS := dev,curate,cluster,ray,postgres

export HF_HUB_OFFLINE ?= 1
export TOKENIZERS_PARALLELISM := false

.PHONY: setup demo test check docs bench engines gpu clean

setup: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt -e '.[$(EXTRAS)]'
	touch $@

# The main job on what ships in the box, a trained checkpoint among it: no hub, no key, no GPU, no server.
demo: setup
	$(BIN)/python -m refadv_ablate -m 'perturb=[bow,fixed,descriptor_deletion]' model=tiny_internvl3,listener,listener_unordered data.n=300

test: setup check
	$(BIN)/python -m pytest -n 2 --dist loadgroup

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The documentation site, into site/; a link that leads nowhere fails it.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

bench: setup
	$(BIN)/python -m benchmarks

# Real engines in environments of their own (.venv-*): what can be had here answers what transformers answers,
# is killed, resumes and is freed; caches are measured; the tables of docs/engines.md are written.
engines: setup
	$(BIN)/python -m benchmarks.engines

# A day on a machine with a GPU and a hub: the smallest checkpoint of each family on every engine, and one file
# to send back. REHEARSE=1: the same steps here, on tiny checkpoints. FAMILIES="…" asks some alone, ROWS=… other
# than 100 rows, REMOTE_CODE=1 allows code from the hub. The same command again goes on.
gpu: setup
	HF_HUB_OFFLINE=$(if $(REHEARSE),1,0) $(BIN)/python -m benchmarks.gpu_day $(if $(REHEARSE),--rehearse) \
	  $(if $(FAMILIES),--families $(FAMILIES)) $(if $(ROWS),--rows $(ROWS)) $(if $(REMOTE_CODE),--remote-code)

clean:
	rm -rf $(VENV) .venv-* results mlflow.db mlartifacts dist site
