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
internal/kit/boottime:
internal/kit/cgroup:
internal/kit/wait:
internal/kit/wire:
internal/test/longrun:
internal/kit/outfile:
internal/kit/histogram:
internal/kit/spelling:
internal/kit/alike:
internal/service/ops: # the list of metrics, panels and alerts
internal/gen/ops/run:      internal/service/ops
internal/kit/authority: # certificates for tests and small clusters
internal/test/mutation: # for tests
internal/test/golden: # for tests only
internal/gen/splice: # generated parts of pages
lab/scenarios: # files only
process:
process/property:      process # what a promise means, for every host
process/processtest:   process process/property
lab/trace:                 process
lab/trace/journal:         process lab/trace

# Algorithms: pure machines, which know the contract and nothing of each other.
algorithm/...:         process process/property
algorithm/election/ring: process # how elections pass messages along a ring
algorithm/election/...: process process/property algorithm/election/ring
algorithm/election/byload: process algorithm/election/ring algorithm/election/... # puts another order into them
algorithm/deadlock/...: process process/property algorithm/deadlock
algorithm/broken/...:  process algorithm/... # variants of these, with a rule left out or changed
algorithm/stack:       process # puts them on top of each other
algorithm/stack/ordered: process algorithm/...
algorithm/stack/recovering: process algorithm/...
algorithm/stack/consensus: process algorithm/...
algorithm/stack/deadlocks: process algorithm/...
algorithm/broken:      process algorithm/...
algorithm/served:      process algorithm/... internal/kit/spelling # what servers run
algorithm/view/viewcheck: process algorithm/view # the protocol of views as one algorithm
algorithm:             process algorithm/...

# Laboratory: the deterministic world in which algorithms are watched. It knows
# nothing of the service.
lab/sim:               process process/property lab/trace lab/trace/journal algorithm algorithm/... internal/test/longrun
lab/sim/simtest:       lab/sim process process/property lab/trace lab/trace/journal algorithm algorithm/... internal/test/longrun
lab/measure:           lab/sim process lab/trace algorithm algorithm/... internal/test/longrun
lab/scenario:          lab/sim process lab/trace lab/trace/journal algorithm algorithm/... internal/kit/spelling
lab/check:             lab/scenario lab/sim process process/property lab/trace algorithm algorithm/...
lab/check/audit:       lab/check process algorithm internal/gen/splice

internal/gen/model/run:    lab/check process algorithm internal/test/longrun internal/gen/splice

# The words for what a Spec declares, and the pages made of them.
lab/describe:     process
internal/gen/pages:        lab/describe internal/gen/splice process lab/trace algorithm algorithm/broken algorithm/served lab/measure lab/scenario
internal/gen/pages/run:    internal/gen/pages algorithm
internal/gen/duties:       internal/gen/pages lab/check lab/check/audit lab/measure lab/scenario process algorithm
internal/gen/duties/run:   internal/gen/duties internal/gen/pages lab/check/audit process algorithm

# The engine of the lab's page: requests in, frames out.
lab/course: # lessons and challenges, which are data
lab/engine:            lab/course lab/scenario lab/sim lab/check lab/check/audit lab/measure lab/trace lab/trace/journal process algorithm algorithm/broken lab/describe lab/scenarios
lab/host:              lab/engine # serves the engine on loopback
web/wasm:              lab/engine # and this in a worker of a browser

# Service: the replicated state, the core that decides, what gives it a disk, a
# network and clients, and the server.
api:
api/jsonform:                  api # the JSON forms of its messages
internal/service/version:
internal/service/access:        internal/kit/wire
internal/service/settings:      internal/kit/spelling internal/kit/wire
internal/service/registry/sorted: # sets in order
internal/service/registry/expect: internal/kit/wire # rules about names that are to be held
internal/service/registry:      internal/service/registry/expect internal/service/registry/sorted algorithm/view internal/kit/histogram internal/kit/wire internal/service/access internal/service/settings internal/service/version # never internal/kit/alike: see there
internal/service/agreement:     internal/kit/wire
internal/service/founding:
internal/service/lease:         internal/service/registry
internal/kit/near:
internal/service/clocks:        algorithm/clock/ntp process internal/kit/wire
internal/service/host:          algorithm/globalstate algorithm/served algorithm/view process process/property internal/service/access internal/service/lease internal/service/registry internal/service/settings internal/kit/alike internal/kit/histogram internal/kit/near internal/kit/wire
internal/service/replica:       algorithm/view internal/kit/alike internal/kit/histogram internal/service/access internal/service/agreement internal/service/lease internal/service/registry internal/service/version internal/kit/wire
internal/service/queue:         internal/service/registry
internal/service/store:         internal/service/founding internal/kit/wire
internal/service/peering:       internal/service/founding internal/kit/wire
internal/service/transport:     internal/kit/boottime internal/service/founding internal/service/peering internal/kit/wire
internal/service/backup:        internal/service/registry internal/service/store internal/kit/outfile internal/kit/wire
internal/service/guarded/home:  algorithm/view internal/kit/boottime internal/kit/near internal/kit/wire internal/service/access internal/service/host internal/service/registry internal/service/replica internal/service/settings internal/service/transport internal/service/version # names under algorithms
internal/service/node:          internal/service/guarded/home internal/kit/histogram internal/service/access internal/service/backup internal/service/clocks internal/service/founding internal/service/replica internal/service/agreement internal/service/registry internal/service/settings internal/service/store internal/service/transport internal/service/peering internal/service/queue internal/service/version internal/kit/boottime internal/kit/wire
internal/service/audit:         api api/jsonform internal/service/registry # what an audit log has, for servers and for people who check it
internal/service/stream:        api internal/service/registry
internal/service/authn:         api internal/service/access internal/service/stream # who makes a call
internal/service/auditlog:      api api/jsonform internal/kit/wait internal/service/audit internal/service/node internal/service/registry internal/service/replica internal/service/stream # the file that a server writes
internal/service/listen:        internal/service/transport # the connections of clients, by protocol
internal/service/certs:         internal/kit/wait internal/service/transport
internal/service/metrics:       internal/service/registry/expect api internal/kit/histogram internal/service/access internal/service/clocks internal/service/host internal/service/node internal/service/ops internal/service/registry internal/service/replica internal/service/store internal/service/transport internal/service/version
internal/service/rest:          api api/jsonform internal/kit/wait internal/service/access internal/service/audit internal/service/registry internal/service/stream # the calls over HTTP
internal/service/admission:     api internal/kit/wait internal/service/access internal/service/auditlog internal/service/authn internal/service/metrics internal/service/registry internal/service/rest internal/service/stream # which calls are served
internal/service/forward:       api internal/kit/wait internal/service/authn internal/service/node internal/service/replica internal/service/transport # calls that another server serves
internal/service/act:           api internal/service/authn internal/service/node internal/service/registry internal/service/stream # commands without a session
internal/service/guarded:       algorithm/view api internal/kit/wait internal/service/access internal/service/act internal/service/admission internal/service/authn internal/service/forward internal/service/guarded/home internal/service/host internal/service/node internal/service/registry internal/service/replica internal/service/stream internal/service/version # locks under an algorithm
internal/service/config:        internal/kit/outfile internal/service/authn internal/service/guarded/home internal/service/listen internal/service/node internal/service/replica # the settings of a server
internal/service/attach:        api internal/kit/wait internal/service/auditlog internal/service/authn internal/service/forward internal/service/metrics internal/service/node internal/service/registry internal/service/replica internal/service/stream # the streams of clients
internal/service/query:         internal/service/registry/expect api api/jsonform internal/service/access internal/service/admission internal/service/audit internal/service/authn internal/service/certs internal/service/clocks internal/service/forward internal/service/guarded internal/service/metrics internal/service/node internal/service/registry internal/service/replica internal/service/stream internal/service/version # calls that ask
internal/service/admin:         internal/service/registry/expect api internal/kit/alike internal/service/settings internal/service/access internal/service/act internal/service/admission internal/service/auditlog internal/service/authn internal/service/backup internal/service/config internal/service/forward internal/service/guarded internal/service/metrics internal/service/node internal/service/query internal/service/registry internal/service/replica internal/service/stream internal/service/version # calls of operators
internal/service/server:        api internal/kit/near internal/kit/wait internal/service/access internal/service/admin internal/service/admission internal/service/attach internal/service/audit internal/service/auditlog internal/service/authn internal/service/certs internal/service/config internal/service/forward internal/service/guarded internal/service/guarded/home internal/service/listen internal/service/metrics internal/service/node internal/service/peering internal/service/query internal/service/registry internal/service/replica internal/service/rest internal/service/store internal/service/stream internal/service/transport internal/service/version

internal/service/server/servertest: internal/service/config internal/service/server # for tests only: no line below may name it

# A model of the sessions of the service, for the checker, and its searches.
internal/test/leasemodel:   process internal/service/founding
internal/test/leasemodel/run: internal/test/leasemodel lab/check process internal/test/longrun

# Faces: what people touch. The client speaks the protocol and links no server.
internal/client/line:         api
internal/client/pool:         api internal/client/line
internal/client:       api internal/client/line internal/client/pool internal/kit/boottime internal/kit/near
.:                     api internal/client internal/client/line internal/client/pool internal/kit/near
admin:                 . api api/jsonform internal/client
internal/test/clienttest:   . api internal/client internal/client/line internal/kit/boottime # for tests only: no line below may name it
embed:                 . internal/service/config internal/service/server internal/service/replica # a server in the user's process, and a client of it
web:                   # the page for browsers
internal/cli/guard:        internal/kit/boottime internal/kit/cgroup
internal/cli/local:        . admin internal/service/server
internal/cli/bench:        . admin internal/cli/local internal/kit/boottime lab/measure process api internal/service/server internal/service/version
internal/cli/demo:         . admin internal/cli/local internal/kit/boottime internal/service/server internal/service/version
internal/cli/ui: internal/kit/alike internal/kit/outfile # arguments, tables, errors and the terminal, for all commands
internal/cli/lab:      internal/cli/ui internal/cli/bench internal/kit/cgroup internal/kit/outfile algorithm algorithm/broken algorithm/served algorithm/view/viewcheck process lab/check lab/check/audit lab/describe lab/host lab/measure lab/scenario lab/sim lab/trace web # commands that contact no cluster
internal/cli/cluster/connect: . admin internal/cli/ui internal/client internal/kit/outfile
internal/cli/cluster/forms: . admin api api/jsonform internal/cli/ui # the JSON forms of what the client returns
internal/cli/cluster/keeps: . internal/cli/guard # under which holds processes run
internal/cli/cluster:  . admin api api/jsonform internal/client internal/cli/cluster/forms internal/cli/cluster/connect internal/cli/cluster/keeps internal/cli/guard internal/cli/ui internal/kit/alike internal/kit/outfile algorithm/served internal/service/access internal/service/audit internal/service/backup internal/service/settings
internal/cli/cluster/access: . admin internal/cli/cluster internal/cli/cluster/forms internal/cli/cluster/connect internal/cli/ui internal/kit/outfile internal/service/access internal/service/version
internal/cli/cluster/wrap: . admin api/jsonform internal/cli/cluster internal/cli/cluster/connect internal/cli/cluster/forms internal/cli/cluster/keeps internal/cli/guard internal/kit/alike internal/kit/outfile internal/cli/ui internal/kit/boottime
internal/cli/cluster/servers: . admin internal/cli/bench internal/cli/cluster internal/cli/cluster/connect internal/cli/demo internal/cli/local internal/cli/ui internal/kit/authority internal/service/auditlog internal/service/config internal/service/server web
internal/cli:          internal/cli/ui internal/cli/lab internal/cli/cluster internal/cli/cluster/access internal/cli/cluster/connect internal/cli/cluster/servers internal/cli/cluster/wrap internal/kit/outfile internal/kit/spelling internal/service/server
internal/cli/clitest:  internal/cli # for tests only: no line below may name it
internal/gen/man/run:      internal/cli # writes the manual pages
cmd/conclave:          internal/cli
lab/extend:                internal/cli internal/cli/ui algorithm process # the command line with algorithms of another module

# Tests of the whole, and of the repository.
internal/test/longrun/run:  internal/test/longrun
internal/test/vopr/clock:
internal/test/vopr/faults: # the plans of what happens
internal/test/vopr/stats:  internal/test/leasemodel internal/test/longrun
internal/test/vopr/events:  internal/test/vopr/stats # the course of one run
internal/test/vopr/network: internal/test/vopr/events
internal/test/vopr/history: internal/service/registry # what clients saw of a resource
internal/test/vopr/turns:   internal/service/agreement internal/service/registry internal/service/replica # which requests a leader writes to its log
internal/test/vopr/machine: internal/test/vopr/clock internal/test/vopr/events internal/test/vopr/network
internal/test/vopr/transport: internal/service/peering internal/service/replica internal/test/vopr/events internal/test/vopr/machine internal/test/vopr/network # the connections between servers
internal/test/vopr/copies:  internal/service/peering internal/service/replica internal/test/vopr/machine internal/test/vopr/network internal/test/vopr/transport # processes with copies of the data of servers
internal/test/vopr/disk:    internal/service/agreement internal/service/founding internal/test/vopr/events internal/test/vopr/machine
internal/test/vopr/ledger:  internal/service/agreement # the logs of servers, for the judges
internal/test/vopr/deadlock: internal/service/registry internal/service/version internal/test/vopr/events internal/test/vopr/ledger # the judge of deadlocks
internal/test/vopr/expect:  internal/service/registry internal/service/registry/expect internal/test/vopr/events internal/test/vopr/history # the judge of rules about names that are to be held
internal/test/vopr/linger:  internal/test/vopr/clock internal/test/vopr/events internal/test/vopr/faults internal/test/vopr/history # the judge of names that stay closed
internal/test/vopr/patience: internal/service/registry internal/test/vopr/clock internal/test/vopr/events internal/test/vopr/history # the judge of candidates
internal/test/vopr/periods:  internal/test/vopr/events # the judge of a job that runs once in each period
internal/test/vopr/trace:   api internal/client/line internal/service/registry internal/service/replica internal/test/leasemodel internal/test/vopr/events internal/test/vopr/ledger # decisions, for the model of the sessions
internal/test/vopr/world:   internal/test/vopr/expect api internal/client/line internal/kit/alike internal/service/access internal/service/agreement internal/service/founding internal/service/host internal/service/peering internal/service/queue internal/service/registry internal/service/replica internal/service/stream internal/service/version internal/test/vopr/clock internal/test/vopr/copies internal/test/vopr/deadlock internal/test/vopr/disk internal/test/vopr/events internal/test/vopr/faults internal/test/vopr/history internal/test/vopr/ledger internal/test/vopr/linger internal/test/vopr/machine internal/test/vopr/network internal/test/vopr/patience internal/test/vopr/periods internal/test/vopr/stats internal/test/vopr/trace internal/test/vopr/transport internal/test/vopr/turns # servers, clients and the judge
internal/test/vopr/rules:   internal/service/access internal/service/host internal/service/registry internal/test/vopr/world
internal/test/vopr/names:   internal/service/registry internal/service/settings internal/test/vopr/world
internal/test/vopr/guarded: algorithm/served algorithm/view internal/kit/near internal/service/host internal/service/registry internal/service/replica internal/test/vopr/clock internal/test/vopr/faults internal/test/vopr/history internal/test/vopr/world
internal/test/vopr:         internal/test/vopr/events internal/test/vopr/faults internal/test/vopr/guarded internal/test/vopr/names internal/test/vopr/rules internal/test/vopr/stats internal/test/vopr/world # the server in a simulated world
internal/test/vopr/mutants: internal/test/mutation # mistakes in it
internal/test/vopr/run:     internal/test/vopr internal/test/vopr/events internal/test/vopr/faults internal/test/vopr/mutants internal/test/vopr/stats internal/test/vopr/world internal/test/longrun
internal/test/e2e:
internal/test/attack:
internal/test/nemesis:
internal/test/proxies:
internal/test/upgrade:
internal/test/selftest:
`

// doors says which packages may use which other modules.
const doors = `
go.etcd.io/raft/v3...:                 internal/service/agreement
go.etcd.io/raft/v3:                    internal/service/agreement internal/service/store internal/service/peering # the latter two: see TestOnlyAgreementDrivesRaft
go.etcd.io/raft/v3/raftpb:             internal/service/agreement internal/service/store internal/service/transport internal/service/replica internal/service/node internal/test/vopr/copies internal/test/vopr/deadlock internal/test/vopr/disk internal/test/vopr/ledger internal/test/vopr/trace internal/test/vopr/transport internal/test/vopr/world internal/test/vopr/rules internal/test/vopr/names
go.etcd.io/etcd/...:                   internal/service/store
go.uber.org/zap...:                    internal/service/store

google.golang.org/protobuf/...:        api internal/service/agreement internal/service/store internal/service/transport internal/service/guarded internal/service/query internal/test/vopr/disk internal/test/vopr/transport
google.golang.org/genproto/...:        internal/service/server
google.golang.org/grpc...:      . admin api internal/service/admission internal/service/attach internal/client internal/client/pool internal/test/clienttest internal/service/auditlog internal/service/rest internal/service/act internal/service/admin internal/service/forward internal/service/guarded internal/service/query internal/service/server internal/cli/bench internal/service/authn
github.com/prometheus/...:             internal/service/metrics
github.com/BurntSushi/toml:            internal/service/config internal/cli/cluster/access
github.com/andybalholm/brotli:         web
go.yaml.in/yaml/v3:                    lab/scenario lab/course

github.com/spf13/...:                  internal/cli internal/cli/ui internal/cli/lab internal/cli/cluster... internal/gen/man/run
github.com/coreos/go-systemd/v22/...:  internal/cli/cluster/servers internal/cli/cluster/wrap
github.com/HdrHistogram/...:           internal/cli/bench internal/cli/demo

golang.org/x/sys/...:           internal/kit/boottime internal/cli/guard internal/cli/ui internal/cli/cluster/servers internal/cli/demo internal/cli/local internal/cli/bench internal/service/store internal/service/metrics internal/service/server internal/service/rest internal/cli internal/service/authn
golang.org/x/text/...:          internal/kit/alike
golang.org/x/sync/...:                 internal/service/server internal/cli/bench internal/cli/demo internal/cli/local
golang.org/x/net/...:                  internal/service/server

github.com/cespare/xxhash/v2:          internal/service/registry internal/service/registry/expect
github.com/tidwall/btree:              internal/service/registry/sorted

github.com/anishathalye/porcupine:    internal/test/vopr/history
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

// predicates are the functions of raft that internal/service/store and internal/service/peering may call on
// raft's records. They keep no state.
var predicates = []string{"IsEmptyHardState", "IsEmptySnap", "MustSync", "IsLocalMsgTarget"}

func TestOnlyAgreementDrivesRaft(t *testing.T) {
	report(t, drivers(load(t), "go.etcd.io/raft/v3", "internal/service/agreement", predicates))
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
		server := strings.HasPrefix(own, "internal/service/")
		if server || strings.HasPrefix(dep, "go.etcd.io/") || strings.Contains(dep, "prometheus") {
			complaints = append(complaints, "the client links "+dep)
		}
	}
	return complaints
}

func TestUnwantedIsFound(t *testing.T) {
	expect(t, unwanted([]string{
		"net", module, module + "/api", module + "/internal/kit/boottime", module + "/internal/service/registry",
		"go.etcd.io/raft/v3", "github.com/prometheus/client_golang/prometheus", "google.golang.org/grpc",
	}), []string{
		"the client links " + module + "/internal/service/registry",
		"the client links go.etcd.io/raft/v3",
		"the client links github.com/prometheus/client_golang/prometheus",
	})
}

// ownMachines are the algorithms that servers run for themselves. Those that they run for
// locks are in package served.
var ownMachines = []string{"algorithm/view", "algorithm/globalstate", "algorithm/clock/ntp"}

// A server links the algorithms that it runs, and nothing of the laboratory.
func TestServersLinkWhatTheyServe(t *testing.T) {
	served := goCommand(t, nil, "list", "-deps", "./algorithm/served")
	deps := goCommand(t, nil, "list", "-deps", "./internal/service/...", "./embed")
	report(t, unserved(strings.Fields(deps), strings.Fields(served)))
}

func unserved(deps, served []string) []string {
	var complaints []string
	for _, dep := range deps {
		own, _ := inModule(dep)
		algorithm := own == "algorithm" || strings.HasPrefix(own, "algorithm/")
		if strings.HasPrefix(own, "lab/") || algorithm && !slices.Contains(served, dep) && !slices.Contains(ownMachines, own) {
			complaints = append(complaints, "servers link "+own+", which they do not run")
		}
	}
	return complaints
}

func TestUnservedIsFound(t *testing.T) {
	expect(t, unserved([]string{
		"net", module, module + "/process", module + "/algorithm/view", module + "/algorithm/mutex/central",
		module + "/algorithm/view/viewcheck", module + "/algorithm", module + "/lab/sim",
	}, []string{module + "/algorithm/mutex/central"}), []string{
		"servers link algorithm/view/viewcheck, which they do not run",
		"servers link algorithm, which they do not run",
		"servers link lab/sim, which they do not run",
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
