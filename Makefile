# Front door. The work is done by CMake (presets) and by scripts/.
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
JOBS := $(shell nproc)

.PHONY: all build demo test test-long test-unit test-asan test-tsan lint fmt fuzz bench docs install clean

all: build

build: setup
	@cmake --preset dev >build-dev.log 2>&1 || { cat build-dev.log; rm -f build-dev.log; exit 1; }
	@rm -f build-dev.log
	@cmake --build --preset dev -j $(JOBS)

.PHONY: setup
setup:
	@scripts/setup </dev/null

demo: build
	@scripts/demo

test: setup
	@scripts/run-tests

test-long: setup
	@scripts/run-tests --long

test-unit: setup
	@scripts/run-tests dev

test-asan: setup
	@scripts/run-tests asan

test-tsan: setup
	@scripts/run-tests tsan

lint: setup
	@scripts/lint

fmt: setup
	@scripts/fmt

fuzz: setup
	@scripts/fuzz $(FUZZ_SECONDS)

bench: setup
	@scripts/bench

docs: setup
	@scripts/docs

install: setup
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX)
	@cmake --build --preset release -j $(JOBS)
	@cmake --install build/release

clean:
	rm -rf build
