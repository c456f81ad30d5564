# Everything a contributor runs. "make help" lists the targets.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO        ?= go
BIN       := bin
# The go command takes the version from the tags of the checkout; one that git
# does not trust, or that is no checkout, has none.
BUILDVCS  := $(if $(shell git describe --always 2>/dev/null),true,false)
FUZZTIME  ?= 10s
# Two test binaries at a time: more of them would starve the tests that start
# servers of their own and measure how long things take.
PARALLEL  ?= 2
# A test ends its own waiting after a minute. This is for what hangs: no package needs a quarter of it,
# with four busy loops beside it either.
TIMEOUT   ?= 30m
# What ends processes shortly before a deadline, and fails if others keep it from its work.
ALONE     := internal/cli/guard
# What runs on the machines of clients, and must build for theirs.
CLIENT    := . ./admin ./internal/client/... ./internal/kit/boottime ./internal/cli/guard ./internal/cli/ui ./internal/cli/lab ./internal/cli/cluster/... ./internal/cli ./cmd/conclave

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: go-version
go-version:
	@command -v $(GO) >/dev/null || { echo "make: there is no '$(GO)' in PATH; install Go $$(awk '/^go /{print $$2}' go.mod) or newer, https://go.dev/dl/" >&2; exit 1; }
	@$(GO) env GOVERSION >/dev/null 2>&1 || { echo "make: $$($(GO) version) is too old, and could not fetch a newer one; go.mod asks for Go $$(awk '/^go /{print $$2}' go.mod), https://go.dev/dl/" >&2; exit 1; }

.PHONY: build
build: go-version wasm ## build bin/conclave
	$(GO) build -trimpath -buildvcs=$(BUILDVCS) -o $(BIN)/conclave ./cmd/conclave

# The engine of the lab for browsers. It is built in by everything that is built after
# it, and not committed. QUALITY=11 is a tenth smaller and takes half a minute.
QUALITY   ?= 9
WASM      := web/engine
.PHONY: wasm
wasm: go-version ## build the engine of the lab for browsers into web/engine
	@mkdir -p $(BIN)
	GOOS=js GOARCH=wasm $(GO) build -trimpath -buildvcs=$(BUILDVCS) -ldflags="-s -w" -o $(BIN)/engine.wasm ./web/wasm
	@cmp -s $(BIN)/engine.wasm $(BIN)/engine.packed && test -f $(WASM)/engine.wasm.br || { \
		$(GO) run -C internal/gen/tools ./pack -quality $(QUALITY) $(CURDIR)/$(BIN)/engine.wasm $(CURDIR)/$(WASM)/engine.wasm.br; \
		cp $(BIN)/engine.wasm $(BIN)/engine.packed; }
	@cp web/wasm/worker.js "$$($(GO) env GOROOT)/lib/wasm/wasm_exec.js" $(WASM)/

.PHONY: parity
parity: go-version ## compare what browsers get, under Node, with what the command line gets (needs Node)
	PARITY=1 $(GO) test -count 1 -v -run Agree ./web/wasm

.PHONY: test
test: go-version ## all tests (under 8 minutes on 2 quiet cores, with only Go)
	$(GO) build ./...
	$(GO) test -timeout $(TIMEOUT) ./$(ALONE)
	$(GO) test -p $(PARALLEL) -timeout $(TIMEOUT) $$($(GO) list ./... | grep -v '/$(ALONE)$$')
	$(MAKE) example-check

# What starts servers, plays whole clusters or searches large models is left to test.
SLOW      := internal/test/e2e internal/test/vopr internal/test/vopr/guarded internal/test/vopr/mutants internal/test/vopr/rules internal/test/attack internal/test/leasemodel internal/test/selftest internal/test/upgrade internal/cli/bench internal/service/node internal/service/server lab/sim/simtest lab/measure lab/check algorithm/stack/consensus algorithm/stack/recovering algorithm/broken web/wasm
QUICK      = $$($(GO) list ./... | grep -v -E "/($$(echo $(SLOW) | tr ' ' '|'))$$")

.PHONY: quick
quick: fmt ## nearly everything in a minute: vet, and the tests of machines, texts and pages
	$(GO) vet ./...
	$(GO) test -short -timeout 2m $(QUICK)

.PHONY: example-check
example-check: go-version ## build, test and run the example of an algorithm in a module of its own
	$(GO) -C examples/martin vet ./...
	$(GO) -C examples/martin test -timeout $(TIMEOUT) ./...
	$(GO) -C examples/martin run . check martin -n 4 --entries 1

.PHONY: race
race: go-version ## all tests under the race detector (needs gcc)
	CGO_ENABLED=1 $(GO) test -race -p $(PARALLEL) -timeout 20m ./...

.PHONY: check
check: fmt vet tidy generated staticcheck cross shell bench-check ## format, vet, tidy, drift of generated code, staticcheck, other systems, scripts

.PHONY: quick-check
quick-check: fmt vet tidy generated bench-once ## the parts of check that take seconds

.PHONY: fmt
fmt: go-version ## fail if a file is not gofmt'ed
	@unformatted=$$("$$($(GO) env GOROOT)/bin/gofmt" -l .); \
	if [ -n "$$unformatted" ]; then echo "not gofmt'ed:"; echo "$$unformatted"; exit 1; fi

.PHONY: vet
vet: go-version ## go vet, both modules
	$(GO) vet ./...
	$(GO) -C internal/gen/tools vet ./...

BENCHED = $$(grep -rl --include='*_test.go' --exclude-dir=node_modules --exclude-dir=bin '^func Benchmark' . | grep -v -E '^\./(bench|internal/gen/tools|examples)/' | xargs -n1 dirname | sort -u)

.PHONY: bench-once
bench-once: go-version ## fail if a benchmark fails
	@mkdir -p $(BIN)
	$(GO) test -run '^$$' -bench . -benchtime 1x -timeout 5m $(BENCHED) > $(BIN)/bench-once.txt || { cat $(BIN)/bench-once.txt; exit 1; }

.PHONY: tidy
tidy: go-version ## fail if go.mod or go.sum is not tidy
	$(GO) mod tidy -diff
	$(GO) -C internal/gen/tools mod tidy -diff
	$(GO) -C examples/martin mod tidy -diff

.PHONY: generate
generate: go-version ## write the code that the .proto files describe, and the page's types of the JSON forms
	$(GO) run -C internal/gen/tools ./protogen api/conclave.proto
	$(GO) run -C internal/gen/tools ./tsgen

.PHONY: generated
generated: go-version ## fail if the generated code is not what the .proto files and the JSON forms describe
	$(GO) -C internal/gen/tools test ./...
	$(GO) run -C internal/gen/tools ./protogen -check api/conclave.proto
	$(GO) run -C internal/gen/tools ./tsgen -check

.PHONY: staticcheck
staticcheck: go-version ## staticcheck, in the version that internal/gen/tools/go.mod names
	$(GO) build -C internal/gen/tools -o $(CURDIR)/$(BIN)/staticcheck honnef.co/go/tools/cmd/staticcheck
	$(BIN)/staticcheck ./...

.PHONY: cross
cross: go-version ## vet what clients need on macOS and Windows
	CGO_ENABLED=0 GOOS=darwin $(GO) vet $(CLIENT)
	CGO_ENABLED=0 GOOS=windows $(GO) vet $(CLIENT)

.PHONY: shell
shell: ## shellcheck the scripts, if shellcheck is installed
	@if command -v shellcheck >/dev/null; then shellcheck .ci/run; else echo "shellcheck is not installed: scripts not checked"; fi

.PHONY: fuzz
fuzz: go-version ## every fuzz target for FUZZTIME (10s)
	@targets=$$($(GO) test -list '^Fuzz' ./... | awk '/^Fuzz/ { names[++n] = $$1 } /^ok/ { for (i = 1; i <= n; i++) print $$2, names[i]; n = 0 }'); \
	while read -r package target; do \
		[ -n "$$package" ] || { echo "no fuzz targets"; exit 1; }; \
		echo "$$package $$target"; \
		$(GO) test "$$package" -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME); \
	done <<< "$$targets"

# A part of the long run keeps its figures in docs/long-runs, and writes
# docs/long-runs.md anew. Call one alone to renew only its section.
PART      = $(GO) run ./internal/test/longrun/run

.PHONY: long
long: long-schedules long-costs long-sim long-model model long-audit long-vopr long-attacks long-lease long-founding long-live long-mutants long-disk long-large long-race long-repeat long-fuzz ## what takes longer, and its report docs/long-runs.md; each part also alone:

.PHONY: long-schedules
long-schedules: go-version ## SEEDS (10000) random schedules of every algorithm
	$(PART) -part schedules -title "Random schedules" -total env LONG=1 SEEDS=$(SEEDS) $(GO) test -count 1 -timeout 10h ./lab/sim/simtest

.PHONY: long-costs
long-costs: go-version ## costs of a thousand processes over whole rounds
	$(PART) -part costs -title "Costs against theory" -total env LONG=1 $(GO) test -count 1 -timeout 2h ./lab/measure

.PHONY: long-sim
long-sim: go-version ## how fast the simulator is
	$(PART) -part sim -title "Speed of the simulator" $(GO) test -run '^$$' -bench 'Saturated|Pending|MillionRing' -benchtime 3s -timeout 1h ./lab/sim

.PHONY: long-model
long-model: go-version ## the registry beside its naive twin, 100,000 steps
	$(PART) -part model -title "Registry against its model" $(GO) test -count 1 -timeout 1h ./internal/service/registry -run TestModel -steps 100000

.PHONY: long-vopr
long-vopr: go-version ## 24 simulated hours of the server under catastrophe, 24 of algorithms that guard locks, 8 of rules that change, 1,000 periods of a job
	$(PART) -part vopr -title "The server under catastrophe" $(GO) run ./internal/test/vopr/run -hours 24
	$(PART) -part vopr-live -title "Algorithms on the servers under catastrophe" $(GO) run ./internal/test/vopr/run -live -hours 24
	$(PART) -part vopr-access -title "Rules that change under catastrophe" $(GO) run ./internal/test/vopr/run -access -hours 8
	$(PART) -part vopr-periods -title "Periods of a job under catastrophe" $(GO) run ./internal/test/vopr/run -periods -seconds 300 -hours 17
	$(GO) test -count 1 ./internal/test/vopr -run TestReport -update

.PHONY: long-lease
long-lease: go-version ## the model of the service's sessions, each search for an hour and 16 GiB at most
	$(PART) -part lease -title "The model of sessions" $(GO) run ./internal/test/leasemodel/run -limit 1h -memory 16
	$(GO) test -count 1 ./internal/test/leasemodel -run TestReport -update

.PHONY: long-founding
long-founding: go-version ## founders emptied and crashed: 20 times in all start orders, and every crash
	$(PART) -part founding -title "Founding with an emptied server" env LONG=1 $(GO) test -count 1 -p 1 -timeout 2h -run 'Crash|Emptied|Found' ./internal/service/founding ./internal/service/node

.PHONY: long-live
long-live: go-version ## under each algorithm: 20 kills of the holder's home, the coordinator, a waiter's home, a bystander, the leader; pauses; cuts
	$(PART) -part live -title "Kills of servers under algorithms" env LONG=1 $(GO) test -count 1 -v -timeout 2h ./internal/test/e2e -run TestFaultsByRole
	$(PART) -part live-cuts -title "Cuts between servers under algorithms" env LONG=1 $(GO) test -count 1 -v -timeout 2h ./internal/test/nemesis -run TestLiveCuts
	$(PART) -part live-pauses -title "Homes that stand still under algorithms" env LONG=1 $(GO) test -count 1 -v -timeout 2h ./internal/test/nemesis -run TestPausedHomes

.PHONY: long-mutants
long-mutants: go-version ## every mistake of internal/test/vopr and internal/service/host is found
	LONG=1 $(GO) test -count 1 -timeout 1h ./internal/service/host -run TestMutants
	LONG=1 $(GO) test -count 1 -timeout 1h ./internal/test/vopr/mutants -run TestMutants

.PHONY: long-attacks
long-attacks: go-version ## every attack of internal/test/attack against the program without its defence
	$(PART) -part attacks -title "Attacks without their defences" env LONG=1 $(GO) test -count 1 -v -timeout 3h ./internal/test/attack -run TestDefences

.PHONY: mutants
mutants: go-version ## every mistake of internal/test/vopr with its recorded plan, and another plan where it finds nothing any more
	MUTANTS=all $(GO) test -count 1 -v -timeout 5h ./internal/test/vopr/mutants -run TestMutants

.PHONY: long-disk
long-disk: go-version ## servers whose disk hangs, as processes on a FUSE file system (needs root)
	$(PART) -part disk -title "A disk that hangs" env LONG=1 $(GO) -C bench test -count 1 -v -timeout 10m ./hungdisk

.PHONY: long-large
long-large: go-version ## a large state (LOCKS): readers, and servers that are killed, as processes
	$(PART) -part large -title "A large state" env LONG=1 LOCKS=$(LOCKS) $(GO) -C bench test -count 1 -v -timeout 1h ./large

.PHONY: long-audit
long-audit: go-version ## whether docs/assumptions.md is what the checker finds, all of it
	$(PART) -part audit -title "Assumption audit" env LONG=1 $(GO) test -count 1 -timeout 1h ./lab/check ./lab/check/audit

.PHONY: long-race
long-race: go-version ## all tests under the race detector
	$(PART) -part race -title "Race detector" $(MAKE) race

.PHONY: long-repeat
long-repeat: go-version ## every test ten times
	$(PART) -part repeat -title "Every test ten times" $(GO) test -count 10 -p $(PARALLEL) -timeout 60m ./...

.PHONY: long-fuzz
long-fuzz: go-version ## every fuzz target for a minute
	$(PART) -part fuzz -title "Fuzzing" $(MAKE) fuzz FUZZTIME=1m

# The nemesis says which seed it drew; SEED=n draws the same faults again.
NEMESIS   ?= 45s
SEED      ?= 0
.PHONY: e2e
e2e: build ## the whole, as processes: internal/test/e2e, faults for NEMESIS (45s), the demo
	$(GO) test -count 1 ./internal/test/e2e
	$(GO) test -count 1 -v -run TestNemesis ./internal/test/nemesis -for $(NEMESIS) -seed $(SEED)
	$(BIN)/conclave demo

.PHONY: upgrade-test
upgrade-test: go-version ## replace the servers of running clusters by the next release and back, in every order
	LONG=1 UPGRADE_REQUIRED=1 $(GO) test -count 1 -v -timeout 60m ./internal/test/upgrade

# What servers write at a level is kept for good: see internal/test/golden.
LEVEL     ?= 1
.PHONY: golden
golden: go-version ## write the golden files of LEVEL (1) that are missing; with FORCE=1, all
	$(GO) test -count 1 -run Golden ./internal/service/registry ./internal/service/replica ./internal/service/peering ./internal/service/backup ./internal/service/store ./internal/service/guarded/home ./internal/service/host \
		-args -golden-level=$(LEVEL) -golden-force=$(if $(FORCE),true,false)

.PHONY: latency
latency: go-version ## measure the latency of an acquire as docs/performance.md describes it
	$(GO) run ./cmd/conclave bench --cluster 3 --workload uncontended --clients 1 --json

# Measurements beside other services are a module of their own, with much that
# nothing else needs: what continuous integration runs leaves them out.
.PHONY: bench-check
bench-check: go-version ## build, vet and test the module of the measurements
	$(GO) -C bench mod tidy -diff
	$(GO) -C bench vet ./...
	$(GO) -C bench test ./...

# MEASURE is one of services, failover, holder, fairness, rules, readers, idle, expiry, memory, profile, live, names and checker.
.PHONY: bench
bench: go-version ## measure beside other services and under faults (MEASURE: one of them), and write docs/performance.md
	$(GO) -C bench run . $(or $(MEASURE),all) -page ../docs/performance.md -results ../docs/performance

.PHONY: bench-compare
BASE ?= HEAD
bench-compare: go-version ## compare benchmarks and loads with those of the commit BASE (HEAD)
	$(GO) -C bench run . compare -base $(BASE)

.PHONY: comparison
comparison: go-version ## write docs/comparison.md: what the algorithms cost, measured
	$(GO) run ./cmd/conclave compare -n 10 --markdown > docs/comparison.md.new || { rm docs/comparison.md.new; exit 1; }
	mv docs/comparison.md.new docs/comparison.md

.PHONY: guards
guards: go-version ## write docs/guards-measured.md: what the algorithms send between real servers, and how long that takes
	$(GO) run ./cmd/conclave compare --live -n 3 --markdown > docs/guards-measured.md.new
	mv docs/guards-measured.md.new docs/guards-measured.md

.PHONY: elections
elections: go-version ## write docs/elections.md: what the elections cost, measured
	$(GO) run ./cmd/conclave compare --elections -n 8 --markdown > docs/elections.md.new || { rm docs/elections.md.new; exit 1; }
	mv docs/elections.md.new docs/elections.md

.PHONY: resets
resets: go-version ## write docs/majority-resets.md: how often forgetful coordinators let two in
	$(GO) run ./cmd/conclave compare --resets > docs/majority-resets.md.new
	mv docs/majority-resets.md.new docs/majority-resets.md

.PHONY: algorithm
algorithm: go-version ## write everything generated for the algorithm NAME, and print what is left; with FAMILY begin a new one
	@test -n "$(NAME)" || { echo "make: NAME: empty; write make algorithm NAME=raymond" >&2; exit 1; }
ifdef FAMILY
	@$(GO) run ./internal/gen/duties/run -begin $(FAMILY) $(NAME)
else
	$(GO) run ./internal/gen/model/run -only $(NAME) -limit 30s
	$(MAKE) comparison elections
	$(GO) run ./internal/gen/duties/run $(NAME)
endif

# The tests that judge every algorithm, for the algorithm NAME.
.PHONY: algorithm-test
algorithm-test: go-version ## run the tests that judge the algorithm NAME
	@test -n "$(NAME)" || { echo "make: NAME: empty; write make algorithm-test NAME=raymond" >&2; exit 1; }
	@failed=; package=$$($(GO) run ./internal/gen/duties/run -package $(NAME)); \
	judge() { echo "go test $$*"; $(GO) test -p 1 -timeout 30m "$$@" || failed=1; }; \
	judge ./algorithm "$$package" ./internal/gen/duties; \
	judge ./lab/sim/simtest -run '(TestAlgorithms|TestBase)/$(NAME)'; \
	judge ./lab/measure -run '(Say|Theory|EveryCostIsMeasured)$$/$(NAME)'; \
	judge ./lab/check -run '(TestEveryRule|TestSometimes|TestForgets)/$(NAME)'; \
	judge ./lab/scenario ./internal/test/selftest; \
	test -z "$$failed"

.PHONY: pages
NEW ?=
pages: go-version ## write docs/algorithms from the Specs; new pages for all, or those in NEW
	$(GO) run ./internal/gen/pages/run $(NEW)

.PHONY: ops
ops: go-version ## write docs/metrics.md, the dashboard and the alerts from internal/service/ops
	$(GO) run ./internal/gen/ops/run .

# Debian's packages: prometheus has promtool, systemd has systemd-analyze.
OPS_TOOLS := prometheus mandoc systemd
.PHONY: ops-check
ops-check: go-version ## ask a real Prometheus all that dashboard and alerts ask; check unit and manual pages (as root: installs its tools)
	@for tool in prometheus promtool mandoc systemd-analyze; do \
		command -v $$tool >/dev/null && continue; \
		if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then echo "make: $$tool is not installed; it comes with one of $(OPS_TOOLS)" >&2; exit 1; fi; \
		apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $(OPS_TOOLS); break; \
	done
	OPS_REQUIRED=1 $(GO) test -count 1 -timeout 5m ./internal/service/ops ./internal/gen/man/run

PROXY_TOOLS := nginx haproxy
.PHONY: proxy-check
proxy-check: go-version ## try docs/proxies.md on a real nginx and haproxy (as root: installs them)
	@for tool in $(PROXY_TOOLS); do \
		PATH="$$PATH:/usr/sbin" command -v $$tool >/dev/null && continue; \
		if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then echo "make: $$tool is not installed" >&2; exit 1; fi; \
		apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $(PROXY_TOOLS); break; \
	done
	PROXIES_REQUIRED=1 $(GO) test -count 1 -timeout 10m ./internal/test/proxies

.PHONY: man
man: go-version ## write the manual pages into bin/man
	SOURCE_DATE_EPOCH=$(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null)) $(GO) run ./internal/gen/man/run $(BIN)/man

.PHONY: model
LIMIT ?= 2m
model: go-version ## the model checker on every algorithm, each search for LIMIT (2m) at most; writes docs/verification.md
	$(GO) run ./internal/gen/model/run -limit $(LIMIT)

.PHONY: audit
audit: go-version ## write docs/assumptions.md, its data and its scenarios: every algorithm with each assumption dropped (under 10 minutes on 2 cores)
	$(GO) run ./internal/gen/duties/run -audit

.PHONY: detectors
detectors: go-version ## write docs/detectors.md: what the failure detectors cost, measured
	$(GO) run ./cmd/conclave compare --detectors -n 10 --markdown > docs/detectors.md.new
	mv docs/detectors.md.new docs/detectors.md

.PHONY: sim
SEEDS ?= 10000
sim: go-version ## SEEDS (10000) random schedules of every algorithm in the simulator
	SEEDS=$(SEEDS) $(GO) test -count 1 -timeout 60m ./lab/sim/... ./lab/measure

.PHONY: vopr
vopr: go-version ## SEEDS (10000) minutes of whole clusters under faults, each from a seed
	$(GO) run ./internal/test/vopr/run -seeds $(SEEDS)

.PHONY: web-test
web-test: build web-tools parity ## the page in a browser, on the real program (needs Node 20.19, npm and Chromium); SHOTS=1 renews the pictures
	cd $(WEB) && CONCLAVE="$(CURDIR)/$(BIN)/conclave" $(NPM) run --silent flows

.PHONY: web-bench
web-bench: build web-tools ## print the figures of the page in Chromium, for docs/performance.md
	cd $(WEB) && CONCLAVE="$(CURDIR)/$(BIN)/conclave" $(NPM) run --silent figures

# The page is built where it is changed, and committed: those who have only Go
# never need npm. Nothing that npm installs runs a script.
NPM       ?= npm
WEB       := web/ui

.PHONY: web-tools
web-tools: $(WEB)/node_modules/.package-lock.json
$(WEB)/node_modules/.package-lock.json: $(WEB)/package.json $(WEB)/package-lock.json
	cd $(WEB) && $(NPM) ci

.PHONY: web
web: web-tools ## build the page (web/ui) into web/dist, which is committed (needs Node 20.19 and npm)
	cd $(WEB) && $(NPM) run --silent check && $(NPM) run --silent unit && $(NPM) run --silent build

.PHONY: web-check
web-check: web-tools ## fail if web/dist is not what web/ui builds
	cd $(WEB) && $(NPM) run --silent check && $(NPM) run --silent unit
	@built=$$(mktemp -d) && trap 'rm -rf "$$built"' EXIT && \
	(cd $(WEB) && $(NPM) run --silent build -- --outDir "$$built" --emptyOutDir --logLevel warn) && \
	diff -r "$$built" web/dist || { echo "web/dist is not what web/ui builds; run make web and commit it"; exit 1; }

.PHONY: clean
clean: ## remove what the targets built
	rm -rf $(BIN) $(WASM)/*.br $(WASM)/*.js
