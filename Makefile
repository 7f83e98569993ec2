# Front door. The work is done by CMake (presets) and by scripts/. Only setup, demo, test and test-*
# install packages; every other target says what is missing, and the command that installs it.
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
JOBS := $(shell nproc)

.PHONY: all setup check-setup build demo test test-long test-python-long test-torch test-unit test-asan test-tsan test-s390x test-wheel lint fmt fuzz bench bench-quick docs install clean

all: build

build: check-setup
	@cmake --preset dev --log-level=NOTICE
	@cmake --build --preset dev -j $(JOBS)

setup:
	@scripts/setup </dev/null

check-setup:
	@scripts/setup --check

demo: setup
	@scripts/demo

test: setup
	@scripts/run-tests

test-long: setup
	@scripts/run-tests --long

test-python-long: setup
	@scripts/run-tests python-long

test-torch: setup
	@scripts/run-tests torch

test-unit: setup
	@scripts/run-tests dev

test-asan: setup
	@scripts/run-tests asan

test-tsan: setup
	@scripts/run-tests tsan

test-s390x: setup
	@scripts/run-tests s390x

test-wheel: setup
	@scripts/wheel

lint: check-setup
	@scripts/lint

fmt: check-setup
	@scripts/fmt

fuzz: check-setup
	@scripts/fuzz $(FUZZ_SECONDS)

bench: check-setup
	@scripts/bench

bench-quick: check-setup
	@scripts/bench --quick

docs: check-setup
	@scripts/docs

install: check-setup
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX)
	@cmake --build --preset release -j $(JOBS)
	@cmake --install build/release

clean:
	rm -rf build
