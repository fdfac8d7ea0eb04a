# All commands. Each prepares what it needs: Debian packages (scripts/deps.sh) and BoringSSL, compiled
# once (scripts/boringssl.sh). ARGS is passed on to what runs, as in `make demo ARGS=--help`.

SHELL := /bin/bash
.DEFAULT_GOAL := help
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Everything that there is, hvq video with libvpx and handshakes by rustls, too.
ALL := --workspace --features hvq/runtime-smol,hvq-cli/video,hvq-quinn/rustls
NESTED := $(wildcard interop/Cargo.toml bench/Cargo.toml mutants/Cargo.toml)
ARGS ?=
CONTROLLERS := --rtt 50ms,20ms,100ms --loss 0,0.1%,1% --trace MM-S,MM-D,LB-S,LB-D --write docs/results/controllers.md \
	--figure data/controllers.svg

PREFIX ?= /usr/local

FUZZ_SECONDS ?= 3600
FUZZ_FIRST ?= 1

.PHONY: help platforms releases semver dist wheel mutants prove memory admission fresh attacks chaos failover live video header install ffi-test ffi-fuzz ffi-bench demo controllers report goals test soak tunnel lint fmt interop firefox quinn moq runner aioquic bench rules supply-chain fuzz build clean prepare-%

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

demo: prepare-demo ## build hvq demo alone, load real pages over two emulated channels, compare schedulers, write a report
	@echo "demo: building (a few minutes the first time)"
	@cargo build --release -p hvq-live --no-default-features --bin hvq-demo
	@"$(TARGET)/release/hvq-demo" $(ARGS)

controllers: prepare-base ## compare congestion controllers over two unlike channels in virtual time, put the tables into docs/results
	@echo "controllers: building (a few minutes the first time), then about 15 minutes of processor time"
	@cargo build --release -p hvq-cli
	@"$(TARGET)/release/hvq" lab controllers $(or $(ARGS),$(CONTROLLERS))

report: prepare-base ## run the papers' experiments and our own in virtual time, write report.html
	@echo "report: building (a few minutes the first time), then about an hour of processor time"
	@cargo build --release -p hvq-cli
	@"$(TARGET)/release/hvq" lab run all $(ARGS)
	@"$(TARGET)/release/hvq" lab report

goals: prepare-base ## hold hvq against the goals about channels as they are: each met, missed or undecided, with intervals
	@echo "goals: building (a few minutes the first time), then about twenty minutes of processor time"
	@cargo build --release -p hvq-cli
	@"$(TARGET)/release/hvq" lab run goals $(ARGS)
	@"$(TARGET)/release/hvq" lab show goals
	@"$(TARGET)/release/hvq" lab report goals --out goals.html

video: prepare-video ## send one video over two emulated channels three ways, put what a viewer sees side by side into video.mp4
	@echo "video: building (a few minutes the first time)"
	@cargo build --release -p hvq-cli --features video
	@scripts/video.sh "$(TARGET)/release/hvq" video.mp4 $(ARGS)

live: prepare-live ## load pages with Chromium, load servers with h2load, run curl and iperf3, all over emulated channels in real time
	@echo "live: building (a few minutes the first time), then about six minutes"
	@cargo build --release -p hvq-cli
	@scripts/live.sh "$(TARGET)/release/hvq" $(or $(ARGS),--write docs/results/live.md)

chaos: prepare-chaos ## take interfaces away under a stream of requests in network namespaces, put the longest gaps into docs/results
	@echo "chaos: building (a few minutes the first time), then about seven minutes"
	@cargo build -p hvq-cli
	@scripts/chaos.sh "$(TARGET)/debug/hvq" $(or $(ARGS),--jobs 8 --write docs/results/chaos.md)

failover: prepare-chaos ## fail one of two links in network namespaces a hundred times each way, hvq and its rivals, put the gaps into docs/results (6 hours; ARGS="--trials 4")
	@echo "failover: building (a few minutes the first time), then about 6 hours"
	@scripts/failover.sh $(or $(ARGS),--write docs/results/failover.md --figure data/failover.svg)

tunnel: prepare-tunnel ## measure a tunnel over two links beside kernel MPTCP and WireGuard in network namespaces, put tables and drawings into docs/results
	@echo "tunnel: building (a few minutes the first time), then about half an hour"
	@cargo build --release -p hvq-cli
	@scripts/tunnel.py "$(TARGET)/release/hvq" --write docs/results/tunnel.md $(ARGS)

test: prepare-test ## format check, lints, documentation and all tests
	@echo "test 1/4: format"
	@cargo fmt --all --check
	@echo "test 2/4: lints"
	@cargo clippy $(ALL) --all-targets -- -D warnings
	@echo "test 3/4: documentation"
	@RUSTDOCFLAGS="-D warnings" cargo doc $(ALL) --no-deps --quiet
	@echo "test 4/4: tests"
	@cargo test $(ALL) $(ARGS)
	@echo "test: all passed"

soak: prepare-test ## a million random interactions, or SEEDS of them from FIRST on; SEED=N plays one
	@HVQ_SEEDS=$(SEEDS) HVQ_FIRST=$(FIRST) HVQ_SEED=$(SEED) cargo test -p hvq-tests --test interactions -- \
		--ignored --nocapture soak

prove: prepare-base ## try every case of small domains: integers, packet numbers, nonces, sets, reassembly, amplification
	@cargo test -p hvq-transport --lib proofs -- --include-ignored

mutants: prepare-mutants ## try thousands of small faults, say which no test notices, put the table into docs/results (hours; ARGS="--module wire")
	@scripts/mutants.sh run $(ARGS); status=$$?; scripts/mutants.sh check && scripts/mutants.sh attacks && scripts/mutants.sh report --write && exit $$status

fuzz: prepare-base ## feed every parser, a server and a connection from libFuzzer: a minute each (FUZZ_EACH), or TARGETS="frames authenticated_peer"
	@tests/fuzz/run.sh $(or $(FUZZ_EACH),60) $(TARGETS)

lint: prepare-test ## format check, lints and documentation only
	@cargo fmt --all --check
	@cargo clippy $(ALL) --all-targets -- -D warnings
	@RUSTDOCFLAGS="-D warnings" cargo doc $(ALL) --no-deps --quiet

install: prepare-base ## build the C library and install it below PREFIX (/usr/local), with header, pkg-config and CMake files
	@ffi/install/install.sh "$(PREFIX)"

dist: prepare-dist ## make the packages of the program (tarball, .deb, .rpm, OCI image) and of the crates into dist/, use each (ARGS=--no-crates)
	@scripts/dist.sh $(ARGS)

wheel: prepare-base ## build a Python wheel with the C library inside, into dist/
	@ffi/python/wheel.sh dist

ffi-test: prepare-ffi ## install the C library elsewhere, compile its examples with pkg-config alone, run and check them
	@ffi/tests/examples.sh

ffi-fuzz: prepare-ffi ## an hour of random calls of the C library under AddressSanitizer (FUZZ_SECONDS, FUZZ_FIRST seed)
	@ffi/fuzz/run.sh "$(FUZZ_FIRST)" "$(FUZZ_SECONDS)"

ffi-bench: prepare-base ## compare bulk through the C interface with the Rust API, in one run
	@cargo test --release --quiet -p hvq-ffi --test interface -- --ignored --nocapture --test-threads 1

header: prepare-base ## write ffi/include/hvq.h from the sources of the C interface
	@HVQ_WRITE_HEADER=1 cargo test --quiet -p hvq-ffi --test header

fmt: ## format the code
	@cargo fmt --all
	@for manifest in $(NESTED); do cargo fmt --all --manifest-path $$manifest; done

interop: prepare-interop ## exchange data with other implementations, put the table into docs/results
	@scripts/interop.sh $(or $(ARGS),--write docs/results/interop.md)

firefox: prepare-firefox ## have Firefox find the gateway's HTTP/3 by itself, upload, and speak over WebSocket and WebTransport
	@mkdir -p "$(TARGET)/firefox"
	@HVQ_FIREFOX=$$(command -v firefox-esr || command -v firefox) HVQ_CERTUTIL=certutil HVQ_SCREENSHOTS="$(abspath $(TARGET))/firefox" \
		cargo test $(ALL) --test end_to_end firefox -- --ignored --nocapture
	@echo "firefox: pictures of the pages are in $(TARGET)/firefox"

quinn: prepare-base ## run quinn's own examples and tests over hvq-quinn, put the table into docs/results
	@scripts/quinn.sh $(or $(ARGS),--write docs/results/quinn.md)

moq: prepare-moq ## run moq-relay and moq from their crates over two links of which one dies, put the gaps between frames into docs/results
	@echo "moq: building (a quarter of an hour the first time), then about five minutes"
	@cargo build -p hvq-cli
	@scripts/moq.py "$(TARGET)/debug/hvq" $(or $(ARGS),--write docs/results/moq.md)

runner: prepare-runner ## play the cases of the QUIC interop runner over a relay, put the table into docs/results
	@scripts/runner.sh $(or $(ARGS),--write docs/results/runner.md)

aioquic: prepare-runner ## make aioquic's 13 interop checks, put the table into docs/results
	@scripts/runner.sh --aioquic $(or $(ARGS),--write docs/results/aioquic.md)

bench: prepare-bench ## compare throughput and CPU with other implementations over loopback
	@scripts/bench.sh $(or $(ARGS),--write docs/results/bench.md)

admission: prepare-base ## flood a server with handshakes from one address over the sockets of this machine, and time others (two minutes)
	@scripts/figures.sh admission HVQ_ADMISSION_TABLE cargo test --release -p hvq --test admission -- --ignored --nocapture

memory: prepare-base ## have up to a thousand clients ask for much and permit nothing, weigh the programs, time honest requests (some minutes)
	@scripts/figures.sh memory HVQ_MEMORY_TABLE cargo test --release -p hvq-cli --test command memory -- --ignored --nocapture

attacks: prepare-base ## count the attacks that tests try (tests/ATTACKS.md), put the numbers into docs/results
	@HVQ_WRITE_ATTACKS=1 cargo test --quiet -p hvq-tests --test architecture the_readme

fresh: ## run make demo, make test and .ci/run on a minimal Debian made for it (root), or ARGS="'make interop' …" there
	@scripts/deps.sh fresh
	@scripts/fresh.sh $(ARGS)

rules: prepare-rules ## check every quotation of a specification, count the rules that are cited and tested
	@scripts/rules.sh --write docs/results/rules.md $(ARGS)

platforms: prepare-platforms ## type-check the crates for Windows, macOS, Android, iOS and musl, put the table into docs/results
	@scripts/platforms.py $(or $(ARGS),--write docs/results/platforms.md)

releases: prepare-platforms ## compile the crates and the program with the oldest Rust that each permits, put the table into docs/results
	@scripts/releases.py $(or $(ARGS),--write docs/results/platforms.md)

semver: prepare-semver ## compare the interfaces of the crates with the last tag (ARGS=REVISION), say what breaks and CHANGELOG does not name
	@scripts/semver.py $(ARGS)

supply-chain: prepare-rules ## check licences, sources, bans and advisories of all dependencies, list them (SBOM)
	@scripts/supply-chain.sh "$(TARGET)/sbom"

build: prepare-base ## build all crates in release mode
	@cargo build --release --workspace

clean: ## remove build results (the cached BoringSSL stays)
	@cargo clean --quiet
	@for manifest in $(NESTED); do cargo clean --quiet --manifest-path $$manifest; done
	@rm -f .boringssl

prepare-%:
	@scripts/deps.sh $*
	@scripts/boringssl.sh
