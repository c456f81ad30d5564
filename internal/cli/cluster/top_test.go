package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
)

// busyCluster is a view of three servers, one of them down, and many locks.
func busyCluster(locks int) *topView {
	began := time.Date(2026, 11, 21, 18, 0, 0, 0, time.UTC)
	s := admin.Status{
		Cluster: "00ff00ff00ff00ff", Server: 1, Leader: 1, Term: 2, CommitIndex: 1000, Fence: 1 << 40,
		Sessions: 12, Locks: uint64(locks), Elections: 2, Waiters: 31,
		Members: []admin.Member{
			{ID: 1, ClientAddress: "10.0.0.1:7400", Voter: true, Leader: true, MatchIndex: 1200},
			{ID: 2, ClientAddress: "10.0.0.2:7400", Voter: true, Connected: true, MatchIndex: 1190},
			{ID: 3, ClientAddress: "10.0.0.3:7400", Voter: true, MatchIndex: 400},
		},
	}
	v := &topView{interval: time.Second}
	v.take(sample{at: began, status: s})
	s.CommitIndex, s.Fence = 1200, 1<<40+50
	next := sample{at: began.Add(2 * time.Second), status: s}
	for i := range locks {
		next.resources = append(next.resources, conclave.Resource{
			Name: fmt.Sprintf("jobs/%02d/%s", i, strings.Repeat("x", i)), QueueLength: uint32(i % 7),
			Holders: []conclave.Holder{{Program: "report.sh", PID: 4711, Host: "a7", Since: began.Add(-time.Duration(i) * time.Minute), Fence: 1<<40 + uint64(i)}},
		})
	}
	v.take(next)
	return v
}

func TestTopFitsTheTerminal(t *testing.T) {
	v := busyCluster(60)
	for _, size := range [][2]int{{80, 24}, {132, 50}, {40, 10}, {20, 3}, {1, 1}} {
		lines := v.lines(size[0], size[1])
		if len(lines) > size[1] {
			t.Errorf("%v: %d lines", size, len(lines))
		}
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > size[0] {
				t.Errorf("%v: %d runes in %q", size, n, line)
			}
		}
	}
	want := `conclave 00ff00ff00ff00ff  leader 1, term 2  18:00:02, every 1s  q quits
12 sessions  60 locks  2 elections  31 waiting  25 grants/s  100 log entries/s

SERVER  ROLE      CLIENTS AT     CONNECTED  LAG
1       leader    10.0.0.1:7400  yes        0
2       follower  10.0.0.2:7400  yes        10
3       follower  10.0.0.3:7400  no         -

LOCK                         WAITING  HOLDER                AGE    FENCE
jobs/55/xxxxxxxxxxxxxxxxxx…  6        report.sh 4711 on a7  55m2s  1099511627831
jobs/48/xxxxxxxxxxxxxxxxxx…  6        report.sh 4711 on a7  48m2s  1099511627824`
	if got := strings.Join(v.lines(80, 24)[:11], "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := v.lines(80, 24)[23]; got != "and 46 more" {
		t.Errorf("the last line is %q", got)
	}
}

func TestTopTellsWhatItCannotKnow(t *testing.T) {
	v := &topView{interval: time.Second}
	if got := v.lines(80, 24); len(got) != 1 || got[0] != "conclave top: waiting for the cluster" {
		t.Errorf("before the first look: %q", got)
	}
	v = busyCluster(2)
	s := *v.last
	s.status.Fence, s.at = 2<<40, s.at.Add(time.Second)
	s.resources[0].Holders = nil
	s.resources[1].Holders = append(s.resources[1].Holders, conclave.Holder{})
	s.resources[1].Holders[0].Revoked, s.resources[1].Holders[0].Host = true, "a\x1b[2J"
	v.take(s)
	v.take(sample{err: errors.New("conclave: no quorum\nat all")})
	text := strings.Join(v.lines(0, 24), "\n")
	for _, want := range []string{
		"  - grants/s  0 log entries/s\n", "no answer since 18:00:03: no quorum; at all\n",
		`(asked to leave) report.sh 4711 on "a\x1b[2J" and 1 more  `, "jobs/00/   0        -  ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

// What nobody holds has no age, so it is behind what is held and has as many waiters.
func TestTopListsWhatNobodyHoldsLast(t *testing.T) {
	v := busyCluster(3)
	for i := range v.last.resources {
		v.last.resources[i].QueueLength = 2
	}
	v.last.resources[0].Holders = nil
	rows, _ := v.busiest(10)
	if last := rows[len(rows)-1]; last[0] != "jobs/00/" || last[3] != "-" {
		t.Errorf("the last of %v", rows)
	}
}

// TestTopShowsNamespaces: what all members did between two looks, added up.
func TestTopShowsNamespaces(t *testing.T) {
	v := busyCluster(1)
	view := func(entries, messages uint64) admin.View {
		home := &admin.Home{State: "OPEN", Remaining: time.Second, Paused: 2 * time.Millisecond, Namespaces: []admin.Namespace{
			{Prefix: "a/", Algorithm: "lamport", Names: 3, Entries: entries, Messages: messages},
		}}
		return admin.View{Epoch: 7, Members: []admin.Seat{{Server: 1, Home: home}, {Server: 2, Home: home}, {Server: 3, Problem: "no answer"}}}
	}
	v.before.view, v.last.view = view(10, 60), view(30, 180)
	text := strings.Join(v.lines(0, 40), "\n")
	for _, want := range []string{"epoch 7  2 of 3 members open  last pause 2ms", "a/         lamport  3      20         6.00"} {
		if !strings.Contains(text, want) {
			t.Errorf("top lacks %q:\n%s", want, text)
		}
	}
	v.last.view = view(1, 2) // a server was started again
	if text := strings.Join(v.lines(0, 40), "\n"); !strings.Contains(text, "a/         lamport  3      -          -") {
		t.Errorf("top says\n%s", text)
	}
}
