# Daily acts, quick when nothing changed. setup, demo, pronounce, test, zoo and install set up what they need
# (tools/setup.sh); the others say what is missing.
.PHONY: help setup build demo pronounce test check test-cpus test-seeds flat zoo differential lint format docs fixtures figures bench asan clang fuzz install clean
prefix ?= build/prefix
python := .venv/bin/python
quick := core kernels functional inference
space := $(subst ,, )

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: ## everything that any target needs: Debian packages, .venv, LibTorch
	@tools/setup.sh build demo pronounce test bench clang docs

build: ## the library and the command line, in build/release
	@tools/setup.sh --check build
	@tools/build.sh release posenc posenc-cli

demo: ## the notebooks' modules in C++ against Python, with pictures; a model that learns to pronounce
	@tools/setup.sh build demo pronounce
	@tools/build.sh release posenc-cli posenc-pronounce
	@tools/demo.sh

pronounce: ## teach a Transformer to pronounce English in MINUTES (default 5); FRESH=1 begins anew
	@tools/setup.sh build pronounce
	@tools/build.sh release posenc-pronounce
	@tools/pronounce.sh "$(or $(MINUTES),5)" $(if $(FRESH),--fresh)

test: ## lint, then build and run every test
	@tools/setup.sh build test
	@$(python) tools/lint.py
	@WITH_TESTS=ON tools/build.sh release
	@ctest --preset release -j2
	@[ -f .venv-zoo/zoo-stamp ] || echo "zoo.live skipped: the real packages are not here; make zoo installs them into .venv-zoo"

check: ## for a contributor: format, lint, the tests that need no Python; a minute once they are built
	@tools/setup.sh --check build test
	@$(python) tools/lint.py
	@WITH_TESTS=ON tools/build.sh release posenc posenc-cli $(addsuffix _test,$(quick))
	@ctest --preset release -j2 -L '^($(subst $(space),|,$(quick)))$$'

zoo: ## every preset against the real packages (minutes and 300 MB the first time)
	@tools/setup.sh build
	@tools/build.sh release posenc-cli
	@$(python) tools/zoo/make_env.py .venv-zoo
	@.venv-zoo/bin/python -B tools/zoo/compare.py --posenc build/release/posenc --threads 1 2

flat: ## serve random batches for MINUTES (default 5), without and with huge pages: memory must not grow
	@tools/setup.sh --check build test
	@WITH_TESTS=ON tools/build.sh release posenc-flat
	@build/release/tests/posenc-flat $(or $(MINUTES),5)
	@GLIBC_TUNABLES=glibc.malloc.hugetlb=1 build/release/tests/posenc-flat $(or $(MINUTES),5)

lint: ## format as diff, layering, stems, file budgets (seconds)
	@tools/setup.sh --check lint
	@$(python) tools/lint.py

format: ## rewrite the C++ files as clang-format wants them
	@tools/setup.sh --check lint
	@$(python) tools/lint.py --fix

docs: ## the API reference, in build/docs/html; warnings are errors (seconds)
	@tools/setup.sh --check docs
	@tools/reference.sh build/docs
	@echo "the reference is in build/docs/html/index.html"

fixtures: ## write tests/fixtures anew from the Python reference
	@tools/setup.sh --check build test
	@$(python) notebooks_ref/regenerate.py

figures: ## draw the pictures of README and docs anew
	@tools/setup.sh --check build demo
	@tools/build.sh release posenc-cli
	@build/release/posenc plot --out build/figures && cp build/figures/heat_map.png docs/images/
	@$(python) tools/error_plot.py build/release/posenc docs/images/error_over_position.png

bench: ## build and run the benchmarks beside Python's, ratios last; 5 minutes; BENCH=regex for some, BENCH=decode for decoding
	@tools/setup.sh --check build bench
	@tools/build.sh bench posenc_benchmark
	@$(python) -B tools/bench.py build/bench/tests/benchmarks/posenc_benchmark --filter '$(or $(BENCH),^(?!decode))' --json build/bench/results.json

test-cpus: ## the tests that compare numbers, as other processors would run them: ATEN_CPU_CAPABILITY x POSENC_ISA x threads
	@tools/setup.sh --check build test
	@WITH_TESTS=ON tools/build.sh release
	@$(python) -B tools/test_matrix.py cpus --build build/release

test-seeds: ## the tests that draw what they compare, with N (default 20) other seeds; FIRST=seed has them again
	@tools/setup.sh --check build test
	@WITH_TESTS=ON tools/build.sh release
	@$(python) -B tools/test_matrix.py seeds --build build/release --count $(or $(N),20) $(if $(FIRST),--first $(FIRST))

differential: ## random cases against Python's packages for SECONDS (default 120); SEED=N, AREA=, BATCH= have one again
	@tools/setup.sh --check build test
	@WITH_TESTS=ON tools/build.sh release posenc-cli posenc-differential
	@$(python) -B tests/differential/run.py --posenc build/release/posenc \
	  --driver build/release/tests/differential/posenc-differential --seconds $(or $(SECONDS),120) \
	  $(if $(SEED),--seed $(SEED)) $(if $(AREA),--area $(AREA)) $(if $(BATCH),--batch $(BATCH))

asan: ## every test under AddressSanitizer and UndefinedBehaviorSanitizer
	@tools/setup.sh --check build test
	@WITH_TESTS=ON tools/build.sh asan
	@ctest --preset asan -j2

clang: ## library and command line by clang 14, warnings are errors
	@tools/setup.sh --check build clang
	@tools/build.sh clang posenc posenc-cli

fuzz: ## fuzz the readers of files for FUZZ_SECONDS (default 600) each; TARGETS=name... for some
	@tools/setup.sh --check build test
	@$(python) tests/io/real_files.py build/fuzz/real
	@$(python) -B tests/fuzz/run.py --build build/fuzz --real build/fuzz/real --seconds $(or $(FUZZ_SECONDS),600) $(TARGETS)

install: ## install into prefix=DIR (default build/prefix)
	@tools/setup.sh build
	@tools/build.sh release posenc posenc-cli
	@cmake --install build/release --prefix "$(prefix)"

clean: ## remove build/ (and nothing else; .venv stays)
	@rm -rf build
