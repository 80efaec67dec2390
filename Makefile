# make run    sets up .venv, starts SemSim Studio on the built-in study
# make test   sets up .venv, runs lint, types and the quick tests
# make test-all  runs lint, types and all tests (make test-slow: the others alone)
# make flower sets up .venv/flower, with what Flower needs in front of .venv
# make check  lint, types and the tests that a change since BASE (main) touches
# make bench  makes the tables of benchmarks/README.md again and goes on where it ended (ARGS='--only startup', ARGS=--list)
# make docs   builds docs/ into site/, strictly
# make pins   compiles the requirements from the ranges of pyproject.toml (ARGS=--upgrade: newest)
# make space  lays a folder for a Hugging Face Space (DIR=…), with torch for the CPU
# make formats sets up .venv/formats, with the libraries that read the exports
PYTHON ?= python3
HOST   ?= 127.0.0.1
PORT   ?= 7860
ARGS   ?=
BASE   ?= main
BIN     = .venv/bin
# Accounts are asked for where others can reach the studio.
LOCAL   = $(if $(filter 127.0.0.1 localhost ::1,$(HOST)),--local)

# Else every process that is started would compile the project anew.
export PYTHONDONTWRITEBYTECODE =

.PHONY: space run test test-all test-slow bench check lint types docs demo demo-semsim flower formats pins clean help

help:
	@grep -E '^# make' Makefile | sed 's/^# //'

# An environment holds the path of its folder: one that was moved or copied is made anew.
PLACE = cd .venv 2> /dev/null && pwd -P
MOVED := $(shell test -s .venv/run.stamp && test "$$(cat .venv/run.stamp)" != "$$($(PLACE))" && echo moved)
ifdef MOVED
.PHONY: .venv/run.stamp
endif

# Half an environment, without pip, is made anew. Pip shows how far it is, but where most is there.
.venv/run.stamp: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null || { echo \
		"$(PYTHON) is not Python 3.11 or newer. Name one that is: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	@test -z "$(MOVED)" && $(BIN)/python -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv --clear .venv || { $(FULL) echo \
		"No environment was made. On Debian and Ubuntu: sudo apt install python3-venv"; exit 1; }
	@echo "Installing requirements.txt into .venv: $(SIZE) once, of it CUDA 4.3 and PyTorch 1.1."
	@test -e $@ || $(call pip,download --no-deps --retries 1 --dest .venv/probe $$(grep -m 1 == requirements.txt)) || { \
		$(FULL) echo "No package index answers. Connect this machine, or set PIP_INDEX_URL to one it reaches."; exit 1; }
	@exec 3>&1; said=$$($(BIN)/python -m pip install $(if $(MOVED),,$(if $(wildcard $@),--quiet)) -r requirements.txt 2>&1 >&3) || { \
		echo "$$said" >&2; $(FULL) echo "Pip says above what is in the way; make $(MAKECMDGOALS) goes on where it ended."; exit 1; }
	@rm -rf .venv/probe
	@$(BIN)/python -m pip install --quiet --no-deps --editable .
	@($(PLACE)) > $@

pip = $(BIN)/python -m pip --quiet $(1) > /dev/null 2>&1
SIZE = 6.3 GB
# Ends with a sentence where the disk has less than 2 GB left, or had: pip says so and then cleans up.
FULL = free=$$(df -Pk . | awk 'NR == 2 { print int($$4 / 1000000) }'); \
	case "$$said" in *"No space left"*) free=0;; esac; [ "$$free" -gt 1 ] || { echo \
	"The disk is full: the libraries take $(SIZE) here, and pip lays them into TMPDIR (/tmp) first."; exit 1; };

.venv/test.stamp: requirements-dev.txt .venv/run.stamp
	@echo "Installing what the tests need on top, about 0.6 GB."
	$(BIN)/python -m pip install --quiet -r requirements-dev.txt
	touch $@

SITE = -c 'import sysconfig; print(sysconfig.get_path("purelib"))'

# What has versions of its own goes into an environment of its own, in front of the product's.
OWN = flower formats bench
$(OWN:%=.venv/%.stamp): .venv/%.stamp: requirements-%.txt .venv/run.stamp
	$(BIN)/python -m venv .venv/$*
	$(BIN)/python $(SITE) > "$$(.venv/$*/bin/python $(SITE))/studio.pth"
	.venv/$*/bin/python -m pip install --quiet -r requirements-$*.txt
	touch $@

flower formats: %: .venv/%.stamp

run: .venv/run.stamp
	$(BIN)/semsim-studio serve $(LOCAL) --host $(HOST) --port $(PORT) $(ARGS)

# Old modules go, what git keeps in the folder stays.
space:
	@test -n "$(DIR)" || { echo "Name the folder: make space DIR=../my-space"; exit 1; }
	mkdir -p "$(DIR)"
	rm -rf "$(DIR)/semsim" "$(DIR)/annotation" "$(DIR)/data"
	tar -c --exclude=__pycache__ app.py semsim annotation data/demo LICENSE checkpoints/manifest.json checkpoints/demo.* | tar -x -C "$(DIR)"
	cp deploy/space/space.py "$(DIR)/space.py"
	cp deploy/space/gitattributes "$(DIR)/.gitattributes"
	sed "s/GRADIO/$$(sed -n 's/^gradio==//p' requirements.txt)/" deploy/space/README.md > "$(DIR)/README.md"
	{ echo "--extra-index-url https://download.pytorch.org/whl/cpu"; \
		sed -E 's/^(torch|torchvision)==.*/&+cpu/' requirements.txt; } > "$(DIR)/requirements.txt"
	@echo "Push $(DIR) as it is: hf upload OWNER/NAME $(DIR) --repo-type space"

lint: .venv/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/test.stamp
	$(BIN)/mypy

PYTEST = $(BIN)/python -m pytest --dist loadfile --no-loadscope-reorder
# Slow tests wait for servers and browsers half of their time: three processes keep two cores busy.
WAITING = -n $$(( ($$($(BIN)/python -c "import os; print(os.cpu_count())") * 3 + 1) / 2 ))

test: lint
	$(PYTEST) -n auto -m "not slow" $(ARGS)

test-all: lint
	$(PYTEST) $(WAITING) $(ARGS)

test-slow: .venv/test.stamp
	$(PYTEST) $(WAITING) -m slow $(ARGS)

check: lint types
	$(BIN)/python tests/touched.py $(BASE) | xargs -r $(BIN)/python -m pytest -n auto --dist loadfile $(ARGS)

# Torch brings its own CUDA, on Linux alone: pinned here, it would come to who has torch without it.
CUDA = nvidia-cublas nvidia-cuda-cupti nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cudnn-cu13 \
	nvidia-cufft nvidia-cufile nvidia-curand nvidia-cusolver nvidia-cusparse nvidia-cusparselt-cu13 \
	nvidia-nccl-cu13 nvidia-nvjitlink nvidia-nvshmem-cu13 nvidia-nvtx cuda-bindings cuda-pathfinder \
	cuda-toolkit triton
COMPILE = .venv/uv/bin/uv pip compile --quiet --universal --python-version 3.11 \
	--no-header --no-annotate --no-emit-index-url --no-emit-find-links \
	$(addprefix --no-emit-package ,$(CUDA)) $(ARGS)
APPLICATION = pyproject.toml --extra studio --extra lpips --extra fid

# The file $(1) is compiled from $(3). Versions that stand in it or in the files $(2) are kept where
# they fit, its first lines stay, and what the first of $(2) says is not said again.
define compiled
grep -E '^(#|-r)' $(1) > .venv/head
grep -hvE '^(#|-r)' $(1) $(2) > .venv/pins
$(COMPILE) $(3) -o .venv/pins
grep -vxFf $(firstword $(2) /dev/null) .venv/pins | cat .venv/head - > $(1)
endef

.venv/uv/bin/uv:
	$(PYTHON) -m venv .venv/uv
	.venv/uv/bin/python -m pip install --quiet uv

pins: .venv/uv/bin/uv
	$(call compiled,requirements.txt,,$(APPLICATION))
	$(call compiled,requirements-dev.txt,requirements.txt,$(APPLICATION) --constraint requirements.txt \
		--group dev --extra ms-ssim --extra torchmetrics --extra s3 --extra vlm)
	$(call compiled,requirements-flower.txt,requirements.txt requirements-dev.txt,--group flower)
	$(call compiled,requirements-formats.txt,requirements.txt requirements-dev.txt,--group formats)
	$(call compiled,requirements-bench.txt,requirements.txt requirements-dev.txt,--group bench)

bench: .venv/test.stamp .venv/bench.stamp
	.venv/bench/bin/python -m benchmarks.bench $(ARGS)

docs: .venv/test.stamp
	$(BIN)/python -m mkdocs build --strict

# The study of simulated votes as the studio makes it, a SemSim that learns from half of its originals, and
# the first picture of the README: four cases of the rest.
DEMO = data/demo-build/study
STUDY = "Demo: symbols (simulated votes)"

demo: .venv/run.stamp
	$(BIN)/semsim-studio demo build
	$(MAKE) demo-semsim

demo-semsim: .venv/run.stamp
	rm -rf $(DEMO) checkpoints/demo.*
	$(BIN)/semsim-studio study create $(STUDY) --simulated --setting title=Symbols \
		--data-dir $(DEMO) $$(printf -- '--set %s ' data/demo/sets/*)
	$(BIN)/semsim-studio study simulate $(STUDY) --data-dir $(DEMO)
	$(BIN)/semsim-studio study labels $(STUDY) --data-dir $(DEMO) --out $(DEMO)/labels.parquet
	$(BIN)/python -c 'import pandas; pandas.read_parquet("$(DEMO)/labels.parquet").filter(["model", "image_id", "n_votes", \
		"n_recognised", "recognisable", "votes_per_item"]).to_csv("data/demo/labels.csv", index=False)'
	$(BIN)/semsim-studio study export $(STUDY) --data-dir $(DEMO) --out $(DEMO)/votes.parquet
	$(BIN)/semsim-studio train run --labels $(DEMO)/labels.parquet --votes $(DEMO)/votes.parquet \
		--name demo --study $(STUDY) --test-fraction 0.5 --data-dir $(DEMO) \
		--train triplet:backbone=resnet8,epochs=10 --shuffles 20
	$(BIN)/semsim-studio score --labels $(DEMO)/labels.parquet --metrics psnr,ssim,semsim:demo \
		--out $(DEMO)/scores.parquet
	$(BIN)/semsim-studio examples $(DEMO)/votes.parquet $(DEMO)/scores.parquet \
		--labels $(DEMO)/labels.parquet --unseen-by demo --out data/demo/cases.png --rows data/demo/cases.json

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache site
