package selftest

import "testing"

var (
	// machines are what any host may run: simulator, checker, server.
	machines = Pure{
		Packages: []string{"process", "process/property", "algorithm/...", "internal/kit/spelling", "internal/test/leasemodel"},
		Standard: []string{"bytes", "cmp", "encoding/binary", "errors", "fmt", "iter", "math", "math/bits", "slices", "strconv", "strings", "unicode/utf8"},
	}
	// decisions are the parts of a server that must reach the same state on every server
	// and in every repetition. The table of names hashes with a seed of its own in each
	// process: the order in the table never shows.
	decisions = Pure{
		Packages: []string{"internal/client/line", "internal/kit/histogram", "internal/service/access", "internal/service/clocks", "internal/service/founding", "internal/service/host", "internal/service/lease", "internal/service/peering", "internal/service/queue", "internal/service/registry", "internal/service/registry/expect", "internal/service/registry/sorted", "internal/service/replica", "internal/service/settings", "internal/service/stream", "internal/service/version"},
		Standard: append([]string{"container/heap", "crypto/sha256", "crypto/subtle", "encoding/hex", "hash/maphash", "maps", "unicode"}, machines.Standard...),
		Maps:     true,
	}
)

func TestPure(t *testing.T) {
	tree := load(t)
	report(t, CheckPure(tree, machines))
	report(t, CheckPure(tree, decisions))
}

func TestImpurityIsFound(t *testing.T) {
	tree := small(t, map[string]string{
		"process/a.go": `package process
import "time"
import "fmt"
type state struct {
	held map[int]bool
	wake <-chan int
}
var table = map[string]int{}
func run(s *state) {
	scratch := make(map[int]int)
	go fmt.Println(len(scratch), time.Now())
	<-s.wake
	select {}
}`,
		"process/a_test.go": "package process\nimport _ \"os\"\n",
		"other/a.go":        "package other\nimport _ \"os\"\nvar c chan int\n",
	})
	expect(t, CheckPure(tree, machines), []string{
		"process/a.go:2:8: a deterministic package may not import time",
		"process/a.go:6:7: a deterministic package may not use a channel",
		"process/a.go:11:2: a deterministic package may not start a goroutine",
		"process/a.go:12:2: a deterministic package may not use a channel",
		"process/a.go:13:2: a deterministic package may not use a channel",
		"process/a.go:5:7: state may not be a map",
		"process/a.go:8:13: state may not be a map",
	})
}

func TestOrderOfMapsIsFound(t *testing.T) {
	tree := small(t, map[string]string{"internal/service/registry/a.go": `package registry
import "maps"
import "slices"
type state struct { sessions map[int]string }
func sorted(s *state) (names []string) {
	for _, name := range s.sessions { names = append(names, name) }
	slices.Sort(names)
	return names
}
func counted(s *state, other map[int]int) (n, m int) {
	for id := range s.sessions { if id > 0 { n++ } else { m-- } }
	for id := range other { delete(s.sessions, id) }
	return n, m
}
func byKey(s *state) { for range slices.Sorted(maps.Keys(s.sessions)) {} }
func first(s *state) string {
	for _, name := range s.sessions { return name }
	return ""
}
func unsorted(s *state) (names []string) {
	slices.Sort(names)
	for name := range maps.Values(s.sessions) { names = append(names, name) }
	local := map[int]string{}
	for _, name := range local { names = append(names, name) }
	return names
}`})
	expect(t, CheckPure(tree, decisions), []string{
		"internal/service/registry/a.go:17:2: the order of a map shows",
		"internal/service/registry/a.go:22:2: the order of a map shows",
		"internal/service/registry/a.go:24:2: the order of a map shows",
	})
}
