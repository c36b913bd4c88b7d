# The commands of the project. `make demo` and `make test` are all that a newcomer needs.
#
# Every cargo command here has the one profile `release`, the one target folder and, by
# `--workspace`, the one selection of packages: cargo unifies the features of what it selects, so
# that a command with `-p` would build wasmtime and kube once more. ARCHITECTURE.md has the reason.

CARGO ?= cargo
# Said to each command, whatever the caller's own cargo configuration names.
TARGET := --target-dir target
PLUGINS := generic workloads networking config access extension storage scaling tenancy \
	policy-pod-security policy-images policy-required policy-protected policy-secrets

.PHONY: build demo test bench fmt clean host plugins cases
.DEFAULT_GOAL := build

## target/bin/trimtab and our plugins in target/plugins/*.wasm
build: host plugins
	@echo "==> ready: target/bin/trimtab, $(PLUGINS:%=target/plugins/%.wasm)"

host:
	@echo "==> building the host (the first time some minutes: wasmtime, kube; afterwards seconds)"
	$(CARGO) build --release --workspace --bins $(TARGET)
	@mkdir -p target/bin
	@cp -f target/release/trimtab target/bin/trimtab.new
	@mv -f target/bin/trimtab.new target/bin/trimtab

plugins: host
	@.ci/wasm-target
	@echo "==> building our plugins for the sandbox (the first time about a minute)"
	@mkdir -p target/plugins
	@for plugin in $(PLUGINS); do \
		target/bin/trimtab plugin build plugins/$$plugin --out target/plugins || exit $$?; \
	done

## the cases of our plugins, run in the sandbox that production uses
cases: host
	@for plugin in $(PLUGINS); do \
		echo "==> $$plugin"; \
		target/bin/trimtab plugin test plugins/$$plugin || exit $$?; \
	done

## the whole story, told once on a real local control plane
demo: build
	@echo "==> the demonstration (the first time it builds etcd and kube-apiserver: some minutes more)"
	@target/release/demo

## everything that CI checks, `build` included; the last line has the totals
test:
	@.ci/test

## what a pass costs, as ratios within one run
bench: build
	$(CARGO) bench --workspace --profile release --bench '*' $(TARGET)

## the house's formatting
fmt:
	$(CARGO) fmt --all

## removes everything that was built here; the control plane's programs stay in the cache
clean:
	$(CARGO) clean $(TARGET)
