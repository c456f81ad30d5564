package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/conclave-io/conclave/bench/competitor"
	load "github.com/conclave-io/conclave/internal/cli/bench"
)

// share is a share of the leader's processor time, in percent.
type share struct {
	What    string  `json:"what"`
	Percent float64 `json:"percent"`
}

// profile loads a cluster with 128 clients over one connection, and takes a processor profile of
// the leader.
func profile(ctx context.Context, b *bench, c *competitor.Conclave, leader int) (section, error) {
	lockers, closeAll, err := c.Lockers(ctx, load.Uncontended, 128, 1)
	if err != nil {
		return section{}, err
	}
	defer closeAll()
	taken := make(chan error, 1)
	file := filepath.Join(b.dir, "leader.pprof")
	length := max(b.seconds, 5)
	go func() { taken <- fetch(ctx, c.Profiles[leader-1], length, file) }()
	pid := c.PIDs()[leader-1]
	before, err := usedBy(pid)
	if err != nil {
		return section{}, err
	}
	f, err := load.Load{Workload: load.Uncontended, Clients: lockers, Duration: time.Duration(length+1) * time.Second}.Run(ctx)
	if err != nil {
		return section{}, err
	}
	after, err := usedBy(pid)
	if err != nil {
		return section{}, err
	}
	if err := <-taken; err != nil {
		return section{}, err
	}
	kinds, functions, err := shares(ctx, file)
	if err != nil {
		return section{}, err
	}
	text := fmt.Sprintf("The leader used %s cores while it served %s operations/s, that is %s us of processor time for each.\n\n",
		digits((after.CPU-before.CPU).Seconds()/f.Took.Seconds()), digits(f.Rate()), digits(float64((after.CPU-before.CPU).Microseconds())/float64(f.Done)))
	text += shareTable("of the leader's processor time, by what it was spent in", kinds) + "\n" + shareTable("and by function, the first fifteen", functions[:min(15, len(functions))])
	return section{text, map[string]any{"ops_per_s": f.Rate(), "kinds": kinds, "functions": functions[:min(50, len(functions))]}}, nil
}

func shareTable(head string, all []share) string {
	var rows [][]string
	for _, s := range all {
		rows = append(rows, []string{s.What, fmt.Sprintf("%.1f", s.Percent)})
	}
	return table([]string{head, "%"}, rows)
}

// fetch gets a profile from a server.
func fetch(ctx context.Context, address string, seconds int, file string) error {
	content, err := get(ctx, fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", address, seconds))
	if err != nil {
		return err
	}
	return os.WriteFile(file, content, 0o600)
}

// get returns what a server answers to a GET request.
func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, "GET", url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, response.Status)
	}
	return io.ReadAll(response.Body)
}

// shares sums up a profile by kind of work, and by function. It counts the time in a function
// itself, without the functions that it calls.
func shares(ctx context.Context, file string) (kinds, functions []share, err error) {
	top, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-nodecount=1000000", "-nodefraction=0", file).Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go tool pprof: %w", err)
	}
	functions = flat(string(top))
	return byKind(functions), functions, nil
}

// flat parses the output of "pprof -top": flat, flat%, sum%, cum, cum%, function.
func flat(top string) (functions []share) {
	for line := range strings.Lines(top) {
		words := strings.Fields(line)
		if len(words) < 6 || !strings.HasSuffix(words[1], "%") {
			continue
		}
		percent, err := strconv.ParseFloat(strings.TrimSuffix(words[1], "%"), 64)
		if err != nil || percent == 0 {
			continue
		}
		functions = append(functions, share{strings.Join(words[5:], " "), percent})
	}
	return functions
}

type functionKind struct {
	what   string
	begins []string
}

// functionKinds classifies functions by prefixes of their names. The first match counts.
var functionKinds = []functionKind{
	{"system calls: sockets and the disk", []string{"internal/runtime/syscall", "syscall.", "runtime/internal/syscall", "golang.org/x/sys"}},
	{"memory: allocation and collection", []string{"runtime.mallocgc", "runtime.scan", "runtime.gc", "runtime.(*gc", "runtime.greyobject", "runtime.(*mspan", "runtime.(*mcache", "runtime.(*mcentral", "runtime.(*mheap", "runtime.nextFree", "runtime.heap", "runtime.bgsweep", "runtime.sweep", "runtime.wb", "runtime.bulkBarrier", "runtime.markroot", "runtime.findObject", "runtime.spanOf", "runtime.typePointers", "runtime.(*sweep", "runtime.newobject", "runtime.makeslice", "runtime.growslice", "runtime.memclr", "runtime.deductAssist", "runtime.tryDefer"}},
	{"goroutines: scheduling, channels, timers, locks", []string{"runtime.", "internal/runtime", "sync", "internal/sync", "internal/poll"}},
	{"gRPC and HTTP/2", []string{"google.golang.org/grpc", "golang.org/x/net", "net/http", "net.", "bufio."}},
	{"Protocol Buffers", []string{"google.golang.org/protobuf", "github.com/conclave-io/conclave/api"}},
	{"Raft", []string{"go.etcd.io/raft", "github.com/conclave-io/conclave/internal/service/agreement"}},
	{"the log on disk", []string{"go.etcd.io/etcd", "github.com/conclave-io/conclave/internal/service/store", "hash/crc32"}},
	{"the registry and the core", []string{"github.com/conclave-io/conclave/internal/service/registry", "github.com/conclave-io/conclave/internal/service/replica"}},
	{"the node, the servers' connections and the door", []string{"github.com/conclave-io/conclave"}},
}

const rest = "the rest"

func byKind(functions []share) []share {
	sums := make([]float64, len(functionKinds)+1)
	for _, f := range functions {
		i := slices.IndexFunc(functionKinds, func(k functionKind) bool {
			return slices.ContainsFunc(k.begins, func(b string) bool { return strings.HasPrefix(f.What, b) })
		})
		if i < 0 {
			i = len(functionKinds)
		}
		sums[i] += f.Percent
	}
	var kinds []share
	for i, n := range functionKinds {
		kinds = append(kinds, share{n.what, sums[i]})
	}
	slices.SortFunc(kinds, func(a, b share) int { return int(1000 * (b.Percent - a.Percent)) })
	return append(kinds, share{rest, sums[len(functionKinds)]})
}
