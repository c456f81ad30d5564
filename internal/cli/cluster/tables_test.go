package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
)

func TestTables(t *testing.T) {
	var out strings.Builder
	locks := []conclave.Resource{{
		Name: "a\nb", QueueLength: 3, Limit: 1,
		Holders: []conclave.Holder{{Host: "h", PID: 1, Program: "p", Fence: 9, Since: time.Now()}},
	}, {Name: "free"}, {
		Name: "four", Limit: 4,
		Holders: []conclave.Holder{{Host: "h", PID: 2, Program: "p", Fence: 10, Since: time.Now(), Revoked: true, Reason: "db1 goes\tdown"}},
	}, {
		Name: "read", Limit: 1,
		Holders: []conclave.Holder{{Host: "h", PID: 3, Program: "p", Fence: 11, Since: time.Now(), Shared: true, Revoked: true}},
	}}
	if err := resourcesTable(&out, "HOLDER", locks); err != nil {
		t.Fatal(err)
	}
	want := `NAME    HOLDER  PID  PROGRAM  SESSION  SINCE   FENCE  WAITERS  SHARED  LIMIT  ASKED TO LEAVE
"a\nb"  h       1    p        -        0s ago  9      3        no      1      no
free    -       -    -        -        -       -      0        -       -      -
four    h       2    p        -        0s ago  10     0        no      4      yes: "db1 goes\tdown"
read    h       3    p        -        0s ago  11     0        yes     -      yes
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	out.Reset()
	elections := []conclave.Resource{{
		Name: "e", QueueLength: 1,
		Holders: []conclave.Holder{{Session: "s-1f2e3d4c5b6a798897a6b5c4d3e2f100", Owner: "cert:p", Host: "h", PID: 1, Program: "p", Fence: 9, Since: time.Now(), Value: []byte("h:80"), Priority: 10}},
	}}
	if err := resourcesTable(&out, leaderColumn, elections); err != nil {
		t.Fatal(err)
	}
	want = `NAME  OWNER   LEADER  PID  PROGRAM  SESSION     SINCE   FENCE  WAITERS  VALUE  PRIORITY  ASKED TO LEAVE
e     cert:p  h       1    p        s-1f2e3d4c  0s ago  9      1        h:80   10        no
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	out.Reset()
	s := admin.Status{Cluster: "00ff", Server: 2, Leader: 1, Term: 4, Version: "v1", Members: []admin.Member{
		{ID: 1, PeerAddress: "x:1", ClientAddress: "x:2", Voter: true, Leader: true, Connected: true, MatchIndex: 5}, {ID: 2, Voter: true},
	}}
	if err := statusTable(&out, s); err != nil {
		t.Fatal(err)
	}
	want = `cluster 00ff, leader 1 in term 4
answered by server 2 (v1, up 0s): log 0, applied 0, snapshot 0
sessions 0, locks held 0, elections led 0, waiters 0, newest fence 0

SERVER  ROLE      CLIENTS AT  PEERS AT  CONNECTED  ON DISK
1       leader    x:2         x:1       yes        5
2       follower  -           -         yes        -
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	out.Reset()
	s.Clocks = []admin.Clock{
		{Server: 1, Offset: -1_234_567, Error: 98_765, Drift: 0.0000123, DriftError: 0.000002, Over: time.Minute},
		{Server: 3, Offset: 2 * time.Second, Error: 45678, Drift: 0.031, DriftError: 0.000002, Over: time.Minute, Notable: true}, {Server: 4}, {Server: 5, Error: 45678},
	}
	s.Members = append(s.Members, admin.Member{ID: 5})
	if err := writeClocks(&out, s); err != nil {
		t.Fatal(err)
	}
	want = `
clocks, compared with that of server 2
SERVER  AHEAD BY         DRIFT
1       -1.23ms +- 99µs  0.0012 % +- 0.0002 %
3       2s +- 46µs       3.1000 % +- 0.0002 %
4       0s +- 0s         -
5       -                -
WARNING: the clocks of servers 2 and 3 drift apart by 3.10 %; leases are safe up to 10 %
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
