# The two commands: `make demo` shows Convoke at work, `make test` is everything that CI runs.

SHELL := /bin/bash
CARGO ?= cargo
# Kafka's jars, the Python environment and the built test clients.
export CONVOKE_CACHE ?= $(CURDIR)/target/test-cache

.PHONY: demo test lint clients conformance wire-conformance differential soak fuzz bench image need-rust need-java need-clients need-haproxy

# A real broker, Convoke in front of it, a producer and a group of two stock consumers.
demo: need-rust need-java
	$(CARGO) build --release --bin convoke
	$(CARGO) build --package convoke-support --bin demo
	target/debug/demo target/release/convoke

# Format, lints, the pure core and its simulation, wire, proxy, store, command line, stock clients on real brokers, and Kafka's own
# tests of the group APIs.
test: lint need-java need-clients
	$(CARGO) test --workspace
	$(MAKE) wire-conformance
	@echo "make test: everything passed"

lint: need-rust
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

# Only the stock clients against real brokers; ARGS picks trials by a part of their name.
clients: need-rust need-java need-clients
	$(CARGO) test --test clients -- $(ARGS)

# Stock clients on three nodes while everything around them fails, for an hour; ARGS="MINUTES SEED" for another time, or the same
# faults again. What it did and what was said is left in target/tmp/soak.
soak: need-rust need-java need-clients
	$(CARGO) test --release --test soak -- --soak $(ARGS)

# Apache Kafka's own tests through Convoke, and a table of what came of them: half an hour. ARGS picks sets (wire, tools, harness,
# clients) or classes by a part of their name; ARGS=--help lists more.
conformance: need-rust need-java
	$(CARGO) build --bin convoke
	$(CARGO) run --package convoke-conformance -- $(ARGS)

# Those that send requests of their own; they mostly wait.
wire-conformance: need-rust need-java
	$(CARGO) build --bin convoke
	$(CARGO) run --package convoke-conformance -- wire

# Random conversations with Kafka's own coordinator and with Convoke, until one differs or it is stopped. ARGS: --seed N, --count N,
# --broker VERSION, --kind classic|consumer|mixed|offsets.
differential: need-rust need-java
	$(CARGO) test --test differential -- --forever $(ARGS)

# Everything that reads bytes under libFuzzer; ARGS="NAME SECONDS": a part of the targets' names, and how long each runs.
fuzz: need-rust
	$(call need,c++,apt-get install g++)
	tests/fuzz/run.sh $(ARGS)

# Convoke beside a direct connection, HAProxy and Kafka's own coordinator: some twenty minutes on a machine that does nothing else.
# ARGS goes to the program; ARGS=--help lists what it takes. What is measured on disk is measured in target/bench.
bench: export TMPDIR := $(CURDIR)/target/bench/tmp
bench: export PATH := $(PATH):/usr/sbin
bench: need-rust need-java need-haproxy
	mkdir -p target/bench/tmp
	$(CARGO) build --release --bin convoke
	$(CARGO) build --release -p convoke-bench
	target/release/convoke-bench $(ARGS); status=$$?; rm -rf target/bench/tmp; exit $$status

# The container image, by docker, podman or buildah, and a try of it.
image: need-rust
	docker/build.sh

define need
	@command -v $(1) >/dev/null || { echo "$(1) is missing: $(2)"; exit 1; }
endef

need-rust:
	$(call need,cargo,install Rust 1.95 or newer from https://rustup.rs)

need-java:
	$(call need,java,apt-get install openjdk-17-jdk-headless)
	$(call need,javac,apt-get install openjdk-17-jdk-headless)
	$(call need,mvn,apt-get install maven)

need-clients:
	$(call need,go,install Go 1.26 or newer from https://go.dev/dl)
	$(call need,python3,apt-get install python3 python3-venv)

# The program alone, of Debian's package; its service is not started.
need-haproxy:
	@command -v haproxy >/dev/null || RUNLEVEL=1 $(if $(filter 0,$(shell id -u)),,sudo) apt-get install -y --no-install-recommends haproxy \
		|| { echo "haproxy is missing: apt-get install haproxy"; exit 1; }
