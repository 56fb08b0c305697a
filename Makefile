# Everyday tasks, quick if nothing has changed. setup, demo, pronounce, published, test, zoo, arm64 and install also install what
# they need (tools/setup.sh); the others report what is missing.
.PHONY: help setup build demo pronounce test test-all tested check headers test-cpus test-seeds test-torch flat zoo published differential lint format docs fixtures figures bench bench-programs bench-ranks asan clang tidy arm64 fuzz install package wheel clean
prefix ?= build/prefix
python := .venv/bin/python
space := $(subst ,, )
# What `check` tests: models where they have changed since the last commit, and the lower layers where anything else has.
changed = $(shell git diff --name-only HEAD 2>/dev/null; git ls-files -o --exclude-standard 2>/dev/null)
of_models := src/models/% include/posenc/models/% tests/models/%
own = $(filter $(of_models),$(changed))
below = $(filter-out $(of_models) docs/% tools/% tests/differential/%,$(changed))
quick = $(strip $(if $(own),$(if $(below),$(lower)) models,$(lower)))
lower := base core kernels positions_tables positions_functional inference
# Models that Python trains for the tests, in a minute, are made again where one of them is not finished, or its script is newer.
unmade = $(shell for one in marian llama encoder; do find tests/models/$$one/make_models.py -newer build/release/live/$$one/made 2>&1; done)
made = $(if $(unmade),,--fixture-exclude-setup 'marian|llama|encoder')

help: ## print this list
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: ## install what all targets need: Debian packages, .venv, LibTorch
	@tools/setup.sh build demo pronounce test bench clang docs

build: ## build the library and the command line in build/release
	@tools/setup.sh --check build
	@tools/build.sh release posenc posenc-cli

demo: ## see what posenc does: a BERT, a module of your own, the notebooks, training; three minutes after set-up and build
	@tools/setup.sh build demo pronounce
	@tools/build.sh release posenc-parity posenc-pronounce posenc-demo-encoder posenc-demo-module
	@tools/demo.sh

pronounce: ## train a Transformer to pronounce English in MINUTES (default 5); RANKS=2: on two processes; FRESH=1 starts over
	@tools/setup.sh build pronounce
	@tools/build.sh release posenc-pronounce
	@tools/pronounce.sh "$(or $(MINUTES),5)" $(if $(RANKS),--ranks $(RANKS)) $(if $(FRESH),--fresh)

test: ## lint, build, and run the tests
	@$(MAKE) --no-print-directory tested selection="-LE ^exhaustive$$"

test-all: ## all tests, on whole samples: also second builds as a part of other projects, fuzzing, the pages of the reference (CI)
	@POSENC_EXHAUSTIVE=1 $(MAKE) --no-print-directory tested

tested:
	@tools/setup.sh build test
	@$(python) tools/lint.py
	@WITH_TESTS=ON tools/build.sh release $(if $(POSENC_EXHAUSTIVE),,posenc_tests)
	@ctest --preset release -j2 $(selection)
	@[ -f .venv-zoo/zoo-stamp ] || echo "zoo.live skipped: the original packages are not installed; make zoo installs them into .venv-zoo"

check: ## format, lint, and a quick selection of the tests: the lower layers and frozen models, or if models alone changed, models
	@tools/setup.sh --check build test
	@$(python) tools/lint.py
	@WITH_TESTS=ON tools/build.sh release posenc posenc-cli $(addsuffix _test,$(quick))
	@ctest --preset release -j2 $(made) -L '^($(subst $(space),|,$(quick)))$$' -E '[.](flat|flat_huge_pages|races)$$'

headers: ## compile every public header by itself, as C++17, or as LibTorch requires (two minutes)
	@tools/setup.sh --check build test
	@WITH_TESTS=ON tools/build.sh release headers

zoo: ## compare every preset with the original packages (several minutes and 300 MB the first time)
	@tools/setup.sh build
	@tools/build.sh release posenc-cli
	@$(python) tools/zoo/make_env.py .venv-zoo
	@.venv-zoo/bin/python -B tools/zoo/compare.py --posenc build/release/posenc --threads 1 2

published: ## compare published models with their Python packages: those in packages (540 MB, once), or MODELS=folder,folder; COUNT=800 TEXTS=file KEEP=0
	@tools/setup.sh build published
	@tools/build.sh release posenc posenc-cli
	@$(python) -B tools/published.py '$(MODELS)' --count $(or $(COUNT),800) $(if $(TEXTS),--texts '$(TEXTS)') $(if $(filter 0,$(KEEP)),,--keep)

flat: ## check that memory does not grow: random batches for MINUTES (default 5), without and with huge pages
	@tools/setup.sh --check build test
	@WITH_TESTS=ON tools/build.sh release posenc-flat
	@build/release/tests/posenc-flat $(or $(MINUTES),5)
	@GLIBC_TUNABLES=glibc.malloc.hugetlb=1 build/release/tests/posenc-flat $(or $(MINUTES),5)

lint: ## check formatting, components, file names and file sizes (seconds)
	@tools/setup.sh --check lint
	@$(python) tools/lint.py

format: ## format the C++ files with clang-format
	@tools/setup.sh --check lint
	@$(python) tools/lint.py --fix

docs: ## build the site in build/docs: documents, components, API reference; warnings, broken links and spelling are errors (seconds)
	@tools/setup.sh --check docs
	@tools/reference.sh build/docs
	@echo "the site is in build/docs/index.html"

fixtures: ## regenerate tests/fixtures from the Python reference
	@tools/setup.sh --check build test
	@$(python) notebooks_ref/regenerate.py

figures: ## redraw the plots of docs; MODEL=folder of all-MiniLM-L6-v2 for its positions
	@tools/setup.sh --check build demo
	@tools/build.sh release posenc-cli
	@$(python) tools/plot.py table --out build/figures && cp build/figures/heat_map.png docs/images/
	@$(python) tools/plot.py rotary --out docs/images/rotary_decay.png
	@$(python) tools/plot.py relative --out docs/images/relative_bias.png
	@$(python) tools/plot.py window --out docs/images/relative_window.png
	@$(python) tools/plot.py speech --out docs/images/log_mel.png
	@$(python) tools/plot.py error --out docs/images/error_over_position.png
	@$(python) tools/plot.py pronounce docs/pronounce.json --out docs/images/pronounce.png
	@$(if $(MODEL),$(python) tools/plot.py positions --model '$(MODEL)' --out docs/images/learned_positions.png,echo "learned_positions.png is left as it is: its model is not given (MODEL=folder)")

bench-ranks: ## run data-parallel training steps and Python's; two idle cores, 15 minutes; ROUNDS=5 MODEL=base JSON=file
	@tools/setup.sh --check build bench
	@tools/build.sh bench posenc_rank_benchmark
	@$(python) -B tests/benchmarks/data_parallel.py build/bench/tests/benchmarks/posenc_rank_benchmark --rounds $(or $(ROUNDS),5) --model $(or $(MODEL),base) --json $(or $(JSON),build/bench/ranks.json)

bench-programs: ## measure the tables of docs/performance.md and docs/speech.md; an idle machine, 4 minutes a model after a first quarter of an hour; MODELS=minilm,bert,marian,whisper SECONDS=150; SHAPES=1 THREADS=1: batches beside OpenVINO
	@tools/setup.sh --check build bench published
	@tools/build.sh bench posenc_program_benchmark posenc-cli
	@$(python) -B tools/measure_programs.py build/bench/tests/benchmarks/posenc_program_benchmark $(if $(MODELS),--models '$(MODELS)') --seconds $(or $(SECONDS),150) $(if $(SHAPES),--shapes --threads $(or $(THREADS),1))
	@$(python) -B tools/docs.py --posenc build/bench/posenc --write

bench: ## run the benchmarks and Python's, and print the ratios; 5 minutes; BENCH=regex selects some, BENCH=decode decoding
	@tools/setup.sh --check build bench
	@tools/build.sh bench posenc_benchmark
	@$(python) -B tools/bench.py build/bench/tests/benchmarks/posenc_benchmark --filter '$(or $(BENCH),^(?!decode))' --json build/bench/results.json

test-cpus: ## run the numerical tests as other processors would: ATEN_CPU_CAPABILITY x POSENC_ISA x threads
	@tools/setup.sh --check build test
	@WITH_TESTS=ON tools/build.sh release
	@$(python) -B tools/test_matrix.py cpus --build build/release

test-seeds: ## run the randomised tests with N (default 20) other seeds; FIRST=seed repeats them
	@tools/setup.sh --check build test
	@WITH_TESTS=ON tools/build.sh release
	@$(python) -B tools/test_matrix.py seeds --build build/release --count $(or $(N),20) $(if $(FIRST),--first $(FIRST))

test-torch: ## build with another LibTorch and run tests: VERSION=2.12.0, BUILD=cpu|cuda, TEST_GROUPS="core positions_nn" or all
	@tools/setup.sh --check build test
	@tools/test_torch.sh "$(VERSION)" "$(BUILD)"

differential: ## compare random cases with Python's packages for SECONDS (default 120); SEED=N, AREA=, BATCH= repeat one
	@tools/setup.sh --check build test
	@WITH_TESTS=ON tools/build.sh release posenc-cli posenc-differential posenc-label-cases
	@$(python) -B tests/differential/run.py --posenc build/release/posenc \
	  --driver build/release/tests/differential/posenc-differential --labels build/release/tests/posenc-label-cases --seconds $(or $(SECONDS),120) \
	  $(if $(SEED),--seed $(SEED)) $(if $(AREA),--area $(AREA)) $(if $(BATCH),--batch $(BATCH))

asan: ## run all tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@tools/setup.sh --check build test
	@WITH_TESTS=ON tools/build.sh asan
	@ctest --preset asan -j2

clang: ## build everything, the tests too, with clang 14; warnings are errors
	@tools/setup.sh --check build test clang
	@WITH_TESTS=ON tools/build.sh clang

tidy: ## check src/base/platform and the readers of files with clang-tidy 16 (.clang-tidy); FILES=regex selects others
	@tools/setup.sh --check build test clang
	@WITH_TESTS=ON tools/build.sh clang-files posenc_examples
	@run-clang-tidy-16 -quiet -p build/clang-files '$(or $(FILES),src/(base/platform|weights/(common|manifest|torch))/)'

arm64: ## build for ARM64 Linux and run the tests in emulation; GROUPS=regex selects some
	@tools/setup.sh build arm64
	@tools/arm64/run.sh all '$(GROUPS)'

fuzz: ## fuzz each file reader for FUZZ_SECONDS (default 600); TARGETS=name... selects some
	@tools/setup.sh --check build test
	@$(python) tests/weights/real_files.py build/fuzz/real
	@$(python) -B tests/fuzz/run.py --build build/fuzz --real build/fuzz/real --seconds $(or $(FUZZ_SECONDS),600) $(TARGETS)

package: ## make the archives and Debian packages of a release in build/packages: the tokenizers, and everything
	@tools/setup.sh --check build
	@tools/package.sh

install: ## install into prefix=DIR (default build/prefix)
	@tools/setup.sh build
	@tools/build.sh release posenc posenc-cli
	@cmake --install build/release --prefix "$(prefix)"

wheel: ## build a wheel in build/wheels for the torch of .venv, or of PYTHON=..., and test it in a fresh environment
	@tools/setup.sh build test
	@tools/wheel.sh $(PYTHON)

clean: ## remove build/, but not .venv
	@rm -rf build
