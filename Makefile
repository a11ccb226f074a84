# The commands a person needs. Each installs what is missing first (tools/setup.sh). Everything is built by Bazel.
.PHONY: help demo test view machines verbs torch torch-all bench bench-stickiness bench-compile-time random soak faults model explore simulation mutate mutate-daemon fuzz install wheel package python-test python-test-all asan ubsan tsan sanitize check format reference abi
.DEFAULT_GOAL := help

PREFIX ?= /usr/local
BAZEL := tools/dev/bazel.sh
BIN := bazel-bin

help:
	@echo "make demo                  compile collectives, reduce the gradients of ResNet-50 on 8 ranks, show a deadlock avoided"
	@echo "make test                  build everything, run all tests"
	@echo "make torch                 the Python package, and PyTorch's backend occl on CPUs with two versions of PyTorch, fetched once; torch-all: with ten"
	@echo "make machines              ranks on several machines, which network namespaces stand for: results, bytes on the wire, cut cables"
	@echo "make verbs                 RDMA between soft NICs of User-Mode Linux, whose kernel is built once: ten minutes each"
	@echo "make view                  the page of occl view in a headless Chromium, fetched if there is none: what it draws, and whether it is fast enough"
	@echo "make bench                 compare with Open MPI on this machine; into bench/results/host, as the two below into theirs"
	@echo "make bench-stickiness      context switches and queue lengths with one late rank, as figure 9 of the OCCL paper"
	@echo "make bench-compile-time    what occlc takes for the programs of bench/compile_time"
	@echo "make random PROGRAMS=100000  random programs, compiled and executed; SEED=1"
	@echo "make soak OPERATIONS=1000000  collectives in random orders on 8 ranks: memory must not grow"
	@echo "make faults                ranks killed, stopped, delayed, corrupted at every step of their lives, and 100,000 aborts; about an hour"
	@echo "make model                 the model of the daemon with more interleavings; a quarter of an hour and some GB"
	@echo "make explore               data races in every explored schedule, and the daemon's code under all with two delays; half an hour"
	@echo "make simulation            1,000 random kills and cuts of simulated machines, and 2,048 ranks that meet; half an hour and 8 GB"
	@echo "make mutate                break each rule of the compiler and the verifier in turn and see the tests fail; an hour"
	@echo "make mutate-daemon         break the runtime's synchronisation and what was repaired in turn, and see tests find it; half an hour"
	@echo "make fuzz FUZZ_SECONDS=3600 fuzz the frontend, the formatter, the plan reader, the importers and what other machines send, in turn, each so long"
	@echo "make install PREFIX=<dir>  headers, library, libnccl.so.2 (docs/nccl.md), tools, plans, pkg-config and CMake files; default /usr/local"
	@echo "                           ARCHITECTURES=all: with code for GPUs of compute capability 8.0, 9.0, 10.0 and later; else 9.0 alone. wheel, too"
	@echo "make wheel                 the Python package as dist/*.whl, for every Python from 3.11 on (docs/python.md)"
	@echo "make package               both with ARCHITECTURES=all, as dist/occl.tar and dist/*.whl; nvcc takes long"
	@echo "make python-test           the tests of the Python package, with numpy and pytest from PyPI; PYTHON=python3.12 for another"
	@echo "make python-test-all       with each Python from 3.11 to 3.14 that is there"
	@echo "make asan, ubsan, tsan     all tests under a sanitizer; sanitize: asan and ubsan in one build; TESTS=//compiler/... for some"
	@echo "make check                 before a commit: layout, clang-tidy and names of what differs from the last one; FROM=<commit>, FROM=all"
	@echo "make format                clang-format over the sources"
	@echo "make abi                   packaging/abi.txt, what programs rely on, from library and headers of today"
	@echo "make reference             docs/reference from the programs, passes, operations and results of today; the hashes of all plans"

demo:
	@tools/setup.sh
	@$(BAZEL) build --show_progress --show_progress_rate_limit=10 \
		//tools/occlc //tools/occl-run //tools/demo:train
	@tools/demo/demo.sh $(BIN)/tools/occlc/occlc $(BIN)/tools/occl-run/occl-run \
		$(BIN)/tools/demo/train algorithms/allreduce

test:
	@tools/setup.sh
	@tools/dev/run_tests.sh

machines:
	@tools/setup.sh
	@$(BAZEL) test //test/machines/... --test_env=OCCL_REQUIRE_NAMESPACES=1 --local_test_jobs=1

verbs:
	@tools/setup.sh verbs
	@test/verbs/tests.sh

view:
	@tools/setup.sh view
	@$(BAZEL) test //test/view:browser_test --test_arg=--times --test_output=all --local_test_jobs=1

torch torch-all:
	@tools/setup.sh torch
	@$(BAZEL) build //packaging:liboccl.so.0 //nccl:libnccl.so.2 //tools/occlc //tools/occl-run
	@test/torch/run.sh $(BIN)/packaging/liboccl.so.0 $(if $(filter torch-all,$@),$(ALL_TORCH),$(TORCH))

# Rows of buffers of malloc, and those that STAGE puts off, are not for the table.
bench:
	@tools/setup.sh bench
	@bench/run.py --build "$(BAZEL) build" $(if $(STAGE)$(findstring --private-buffers,$(OPTIONS)),--print) host

bench-stickiness bench-compile-time:
	@tools/setup.sh bench
	@bench/run.py --build "$(BAZEL) build" $(subst -,_,$(@:bench-%=%))

PROGRAMS ?= 100000
SEED ?= 1
# Versions of PyTorch: the first is tested in full, the others briefly.
TORCH ?= 2.11.0 2.15.0
ALL_TORCH := 2.11.0 2.6.0 2.7.1 2.8.0 2.9.1 2.10.0 2.12.1 2.13.0 2.14.1 2.15.0
OPERATIONS ?= 1000000

random:
	@tools/setup.sh
	@$(BAZEL) build //test/random:random_programs
	@$(BIN)/test/random/random_programs --programs $(PROGRAMS) --seed $(SEED)

soak:
	@tools/setup.sh
	@$(BAZEL) build //test/chaos:soak_test //runtime/api/tests/communicator:life_cycle_test
	@OCCL_SOAK_OPERATIONS=$(OPERATIONS) $(BIN)/test/chaos/soak_test
	@OCCL_LIFE_CYCLE_IDS=$(OPERATIONS) $(BIN)/runtime/api/tests/communicator/life_cycle_test --gtest_filter='*Thousand*'

faults:
	@tools/setup.sh
	@$(BAZEL) test //test/faults:every_step_test //test/faults:paused_test //test/faults:random_aborts_test --local_test_jobs=1 \
		--test_env=OCCL_FAULTS_STRIDE=1 --test_env=OCCL_FAULTS_ABORTS=100000 --test_timeout=3600

model:
	@tools/setup.sh
	@$(BAZEL) test //test/model:full --test_env=MINUTES=60 --test_env=MEGABYTES=7000 --test_timeout=3600 --local_test_jobs=1

explore:
	@tools/setup.sh
	@$(BAZEL) test //test/explore/... --test_env=OCCL_EXPLORE_RACES=1 --test_timeout=3600 --local_test_jobs=2
	@$(BAZEL) test //test/explore:daemon_exhaustive_test --test_env=OCCL_EXPLORE_DELAYS=2 --test_timeout=3600 --test_output=all

simulation:
	@tools/setup.sh
	@$(BAZEL) test //test/simulation:failure_test --test_env=OCCL_TEST_SCHEDULES=1000 --test_timeout=3600 --test_output=all
	@$(BAZEL) test //test/simulation:bootstrap_test --test_env=OCCL_TEST_RANKS=2048 --test_timeout=3600 --test_output=all

abi:
	@tools/setup.sh
	@$(BAZEL) build //packaging:abi
	@install -m 644 $(BIN)/packaging/abi.txt.generated packaging/abi.txt

reference:
	@tools/setup.sh
	@$(BAZEL) build //docs/reference:generated //test/plans:hashes
	@install -m 644 $(BIN)/test/plans/plans.tsv.generated test/plans/plans.tsv
	@install -m 644 $(BIN)/docs/reference/compile_options.py.generated python/occl/_generated/compile_options.py
	@for page in $(BIN)/docs/reference/*.md.generated; do install -m 644 "$$page" "docs/reference/$$(basename "$$page" .generated)" || exit 1; done

mutate-daemon:
	@tools/setup.sh
	@test/mutation/mutate.py --daemon $(if $(ONLY),--only $(ONLY))

mutate:
	@tools/setup.sh
	@test/mutation/mutate.py $(if $(ONLY),--only $(ONLY))

FUZZ_SECONDS ?= 3600

fuzz:
	@tools/setup.sh fuzz
	@test/fuzz/fuzz.sh frontend $(FUZZ_SECONDS) algorithms topologies test
	@test/fuzz/fuzz.sh formatter $(FUZZ_SECONDS) algorithms topologies test
	@test/fuzz/fuzz.sh plan $(FUZZ_SECONDS)
	@test/fuzz/fuzz.sh msccl $(FUZZ_SECONDS) test/interchange/Inputs
	@test/fuzz/fuzz.sh synthesis $(FUZZ_SECONDS)
	@test/fuzz/fuzz.sh wire $(FUZZ_SECONDS)

# Of device code: all, or that of everyday builds.
ARCHITECTURES ?=
CONFIG := $(if $(filter all,$(ARCHITECTURES)),--config=package)

install:
	@tools/setup.sh triton
	@$(BAZEL) build $(CONFIG) //packaging:occl.tar
	@mkdir -p "$(DESTDIR)$(PREFIX)"
	@tar --no-same-owner -xf $(BIN)/packaging/occl.tar -C "$(DESTDIR)$(PREFIX)"
	@echo "Installed in $(DESTDIR)$(PREFIX). To build against it:"
	@echo "  export PATH=$(PREFIX)/bin:\$$PATH PKG_CONFIG_PATH=$(PREFIX)/lib/pkgconfig"
	@echo "  g++ -std=c++20 allreduce.cpp -o allreduce \$$(pkg-config --cflags --libs occl)"

wheel:
	@tools/setup.sh python triton
	@OCCL_BUILD_FLAGS="$(CONFIG)" tools/dev/wheel.sh

package:
	@tools/setup.sh triton
	@$(BAZEL) build --show_progress --show_progress_rate_limit=60 --config=package //packaging:occl.tar //packaging:device_code_test
	@mkdir -p dist && cp -f $(BIN)/packaging/occl.tar dist/occl.tar
	@$(MAKE) wheel ARCHITECTURES=all
	@$(BAZEL) test --config=package //packaging:device_code_test

python-test:
	@tools/setup.sh python
	@tools/dev/python_tests.sh $(if $(PYTHON),--python $(PYTHON))

python-test-all:
	@tools/setup.sh python
	@tools/dev/python_tests.sh --each

asan ubsan tsan sanitize:
	@tools/setup.sh
	@tools/dev/run_tests.sh --config=$@

check:
	@tools/setup.sh check
	@tools/dev/check.sh $(FROM)

format:
	@tools/setup.sh format
	@git ls-files '*.h' '*.hpp' '*.cpp' '*.c' '*.cu' '*.cuh' | xargs clang-format -i
