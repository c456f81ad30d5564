package selftest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// floors lists the layers of this repository. Every line names a package, and all
// packages of this module that it may import directly. A line may name only packages of
// lines above it. docs/architecture.md describes the layers.
const floors = `
# Ground: the contract between algorithms and hosts, and odds and ends that
# know nothing of either.
internal/boottime:
internal/wire:
internal/longrun:
internal/outfile:
internal/histogram:
internal/ops: # the list of metrics, panels and alerts
internal/ops/run:      internal/ops
internal/authority: # certificates for tests and small clusters
internal/mutation: # for tests
internal/golden: # for tests only
internal/splice: # generated parts of pages
scenarios: # files only
process:
process/property:      process # what a promise means, for every host
process/processtest:   process process/property
trace:                 process
trace/journal:         process trace

# Algorithms: pure machines, which know the contract and nothing of each other.
algorithm/...:         process process/property
algorithm/election/ring: process # how elections pass messages along a ring
algorithm/election/...: process process/property algorithm/election/ring
algorithm/election/byload: process algorithm/election/ring algorithm/election/... # puts another order into them
algorithm/deadlock/...: process process/property algorithm/deadlock
algorithm/broken/...:  process algorithm/... # variants of these, with a rule left out or changed
algorithm/broken:      process algorithm/...
algorithm/stack:       process algorithm/... # puts them on top of each other
algorithm:             process algorithm/...

# Laboratory: the deterministic world in which algorithms are watched. It knows
# nothing of the service.
lab/sim:               process process/property trace trace/journal algorithm algorithm/... internal/longrun
lab/sim/simtest:       lab/sim process process/property trace trace/journal algorithm algorithm/... internal/longrun
lab/measure:           lab/sim process trace algorithm algorithm/... internal/longrun
lab/scenario:          lab/sim process trace trace/journal algorithm algorithm/...
lab/check:             lab/scenario lab/sim process process/property trace algorithm algorithm/...
lab/check/audit:       lab/check process algorithm internal/splice

internal/model/run:    lab/check process algorithm internal/longrun internal/splice

# The words for what a Spec declares, and the pages made of them.
internal/describe:     process
internal/pages:        internal/describe internal/splice process trace algorithm algorithm/broken lab/measure lab/scenario
internal/pages/run:    internal/pages algorithm
internal/duties:       internal/pages lab/check lab/check/audit lab/measure lab/scenario process algorithm
internal/duties/run:   internal/duties internal/pages lab/check/audit process algorithm

# The engine of the lab's page: requests in, frames out.
lab/course: # lessons and challenges, which are data
lab/engine:            lab/course lab/scenario lab/sim lab/check lab/check/audit lab/measure trace trace/journal process algorithm algorithm/broken internal/describe scenarios
lab/host:              lab/engine # serves the engine on loopback
web/wasm:              lab/engine # and this in a worker of a browser

# Service: the replicated state, the core that decides, what gives it a disk, a
# network and clients, and the server.
service/api:
service/version:
service/access:        internal/wire
service/registry:      algorithm/view internal/histogram internal/wire service/access service/version
service/agreement:     internal/wire
service/founding:
service/lease:         service/registry
internal/near:
service/clocks:        algorithm/clock/ntp process internal/wire
service/host:          algorithm algorithm/globalstate algorithm/view process process/property service/access service/lease service/registry internal/histogram internal/near internal/wire
service/replica:       algorithm/view internal/histogram service/access service/agreement service/lease service/registry service/version internal/wire
service/queue:         service/registry
service/store:         service/founding internal/wire
service/peering:       service/founding internal/wire
service/transport:     service/founding service/peering internal/wire
service/backup:        service/registry service/store internal/outfile internal/wire
service/node:          algorithm/view internal/near internal/histogram service/access service/backup service/clocks service/host service/founding service/replica service/agreement service/registry service/store service/transport service/peering service/queue service/version internal/boottime internal/wire
service/convert:       service/api service/registry
service/feed:          service/api service/convert service/registry
service/audit:         service/api service/registry # what an audit log has, for servers and for people who check it
service/stream:        service/api service/convert service/registry
service/server:        algorithm/view internal/near internal/histogram service/access service/audit service/clocks service/host service/api service/backup service/convert service/feed service/node service/registry service/replica service/store service/stream service/transport service/peering service/version internal/boottime internal/ops

service/server/servertest: service/server # for tests only: no line below may name it

# A model of the sessions of the service, for the checker, and its searches.
internal/leasemodel:   process service/founding
internal/leasemodel/run: internal/leasemodel lab/check process internal/longrun

# Faces: what people touch. The client speaks the protocol and links no server.
internal/line:         service/api
.:                     service/api internal/boottime internal/line internal/near
embed:                 . service/server # a server in the user's process, and a client of it
web:                   # the page for browsers
internal/guard:        internal/boottime
internal/local:        . service/server
internal/bench:        . internal/local internal/boottime lab/measure process service/api service/server service/version
internal/demo:         . internal/local internal/boottime service/server service/version
internal/cli:          . internal/guard internal/local internal/bench internal/demo internal/boottime internal/describe internal/outfile internal/authority service/server service/access service/audit service/backup service/version web process algorithm algorithm/broken algorithm/view trace lab/sim lab/measure lab/scenario lab/check lab/check/audit lab/host
internal/man/run:      internal/cli # writes the manual pages
cmd/conclave:          internal/cli
extend:                internal/cli algorithm process # the command line with algorithms of another module

# Tests of the whole, and of the repository.
internal/longrun/run:  internal/longrun
internal/vopr:         algorithm algorithm/view internal/near service/access service/host service/feed service/peering service/stream service/queue service/founding service/replica service/agreement service/registry service/version service/convert service/api internal/line internal/leasemodel internal/longrun internal/mutation # the server in a simulated world
internal/vopr/run:     internal/vopr internal/longrun
internal/e2e:
internal/attack:
internal/nemesis:
internal/upgrade:
internal/selftest:
`

// doors says which packages may use which other modules.
const doors = `
go.etcd.io/raft/v3...:                 service/agreement
go.etcd.io/raft/v3:                    service/agreement service/store service/peering # the latter two: see TestOnlyAgreementDrivesRaft
go.etcd.io/raft/v3/raftpb:             service/agreement service/store service/transport service/replica service/node internal/vopr
go.etcd.io/etcd/...:                   service/store
go.uber.org/zap...:                    service/store

google.golang.org/protobuf/...:        service/api service/agreement service/store service/transport service/server internal/vopr
google.golang.org/genproto/...:        service/server
google.golang.org/grpc...:             . service/api service/server internal/bench
github.com/prometheus/...:             service/server
github.com/BurntSushi/toml:            service/server internal/cli
github.com/andybalholm/brotli:         web
go.yaml.in/yaml/v3:                    lab/scenario lab/course

github.com/spf13/...:                  internal/cli internal/man/run cmd/conclave
github.com/coreos/go-systemd/v22/...:  internal/cli
github.com/HdrHistogram/...:           internal/bench internal/demo

golang.org/x/sys/...:                  internal/boottime internal/guard internal/cli internal/demo internal/local internal/bench service/store service/server
golang.org/x/sync/...:                 service/server internal/bench internal/demo internal/local
golang.org/x/net/...:                  service/server

github.com/cespare/xxhash/v2:          service/registry
github.com/tidwall/btree:              service/registry

github.com/anishathalye/porcupine:    internal/vopr
github.com/cockroachdb/datadriven:     process/processtest
pgregory.net/rapid:                    process/processtest
github.com/google/go-cmp/cmp:          process/processtest
`

func TestFloors(t *testing.T) {
	rules, err := ParseFloors(floors)
	if err != nil {
		t.Fatal(err)
	}
	report(t, CheckFloors(load(t), rules))
}

func TestDoors(t *testing.T) {
	rules, err := parseRules(doors)
	if err != nil {
		t.Fatal(err)
	}
	report(t, CheckDoors(load(t), rules))
}

// predicates are the functions of raft that service/store and service/peering may call on
// raft's records. They keep no state.
var predicates = []string{"IsEmptyHardState", "IsEmptySnap", "MustSync", "IsLocalMsgTarget"}

func TestOnlyAgreementDrivesRaft(t *testing.T) {
	report(t, drivers(load(t), "go.etcd.io/raft/v3", "service/agreement", predicates))
}

// drivers complains about packages other than one that use more of a package
// than they are allowed.
func drivers(t *Tree, name, driver string, allowed []string) []string {
	var complaints []string
	for _, p := range t.Packages {
		for _, f := range p.sources() {
			if p.Path == driver || !f.imports(name) {
				continue
			}
			ast.Inspect(f.Syntax, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == "raft" && !slices.Contains(allowed, sel.Sel.Name) {
					complaints = append(complaints, t.complaint(n, "only %s may use raft.%s", driver, sel.Sel.Name))
				}
				return true
			})
		}
	}
	return complaints
}

func TestDriversAreFound(t *testing.T) {
	const source = "import \"x/raft\"\nvar a = raft.IsEmptySnap\nvar b = raft.NewRawNode\nvar c = other.Thing\n"
	tree := small(t, map[string]string{"core/a.go": "package core\n" + source, "host/a.go": "package host\n" + source})
	expect(t, drivers(tree, "x/raft", "core", predicates), []string{"host/a.go:4:9: only core may use raft.NewRawNode"})
}

// The client becomes part of users' programs. On no system may it import a server, a
// consensus library or a metrics library.
func TestClientLinksNoServer(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		deps := goCommand(t, []string{"GOOS=" + goos, "CGO_ENABLED=0"}, "list", "-deps", ".")
		report(t, unwanted(strings.Fields(deps)))
	}
}

func unwanted(deps []string) []string {
	var complaints []string
	for _, dep := range deps {
		own, _ := inModule(dep)
		server := strings.HasPrefix(own, "service/") && own != "service/api"
		if server || strings.HasPrefix(dep, "go.etcd.io/") || strings.Contains(dep, "prometheus") {
			complaints = append(complaints, "the client links "+dep)
		}
	}
	return complaints
}

func TestUnwantedIsFound(t *testing.T) {
	expect(t, unwanted([]string{
		"net", module, module + "/service/api", module + "/internal/boottime", module + "/service/registry",
		"go.etcd.io/raft/v3", "github.com/prometheus/client_golang/prometheus", "google.golang.org/grpc",
	}), []string{
		"the client links " + module + "/service/registry",
		"the client links go.etcd.io/raft/v3",
		"the client links github.com/prometheus/client_golang/prometheus",
	})
}

func TestFloorsPointDownward(t *testing.T) {
	_, err := ParseFloors("a: b\nb:\n")
	if err == nil || !strings.Contains(err.Error(), "a may not import b, which does not stand above it") {
		t.Errorf("an upward rule is accepted: %v", err)
	}
	if _, err := ParseFloors("b/...:\na: b/c\n"); err != nil {
		t.Errorf("a pattern above is not found: %v", err)
	}
	if _, err := ParseFloors("no colon\n"); err == nil {
		t.Error("a line without a colon is accepted")
	}
}

func TestFloorsAreChecked(t *testing.T) {
	rules, err := ParseFloors("low:\nlow/other:\nhigh: low # a comment\n")
	if err != nil {
		t.Fatal(err)
	}
	tree := small(t, map[string]string{
		"low/a.go":         "package low\nimport _ \"" + module + "/high\"\n",
		"high/a.go":        "package high\nimport _ \"" + module + "/low\"\nimport _ \"os\"\n",
		"high/b_darwin.go": "package high\nimport _ \"" + module + "/low/other\"\n",
		"high/a_test.go":   "package high\nimport _ \"" + module + "/low/other\"\n",
		"new/a.go":         "package new\n",
	})
	expect(t, CheckFloors(tree, rules), []string{
		"high/b_darwin.go:2:8: high may not import low/other",
		"low/a.go:2:8: low may not import high",
		"new: no floor is given",
	})
}

func TestDoorsAreChecked(t *testing.T) {
	rules, err := parseRules("example.org/raft...: core\nexample.org/raft/pb: core host\n")
	if err != nil {
		t.Fatal(err)
	}
	tree := small(t, map[string]string{
		"core/a.go":      "package core\nimport _ \"example.org/raft/tracker\"\nimport _ \"example.org/raft/pb\"\n",
		"host/a.go":      "package host\nimport _ \"example.org/raft/pb\"\nimport _ \"example.org/raft\"\n",
		"host/b.go":      "package host\nimport _ \"example.org/new\"\nimport _ \"net\"\n",
		"host/a_test.go": "package host\nimport _ \"example.org/raft\"\n",
	})
	expect(t, CheckDoors(tree, rules), []string{
		"host/a.go:3:8: host may not import example.org/raft;",
		"host/b.go:2:8: host may not import example.org/new;",
	})
}
