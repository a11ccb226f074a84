# The commands a person needs. Each installs what is missing first (tools/setup.sh). Everything is built by Bazel.
.PHONY: help demo test bench install asan ubsan tsan format
.DEFAULT_GOAL := help

PREFIX ?= /usr/local

help:
	@echo "make demo                  compile collectives, reduce the gradients of ResNet-50 on 8 ranks, show a deadlock avoided"
	@echo "make test                  build everything, run all tests"
	@echo "make bench                 compare with Open MPI on this machine"
	@echo "make install PREFIX=<dir>  headers, library, tools, plans, pkg-config and CMake files; default /usr/local"
	@echo "make asan, ubsan, tsan     all tests under a sanitizer"
	@echo "make format                clang-format over the sources"

test:
	@tools/setup.sh
	@tools/dev/run_tests.sh

asan ubsan tsan:
	@tools/setup.sh
	@tools/dev/run_tests.sh --config=$@

format:
	@tools/setup.sh format
	@git ls-files '*.h' '*.hpp' '*.cpp' '*.c' '*.cu' '*.cuh' | xargs clang-format -i
