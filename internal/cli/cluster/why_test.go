package cluster

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/conclave-io/conclave/api/jsonform"

	"github.com/conclave-io/conclave/internal/cli/cluster/forms"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

func wantText(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWhyTellsOfALock(t *testing.T) {
	now := time.Now()
	x := conclave.Explanation{
		Held: true,
		Resource: conclave.Resource{
			Name: "a", Limit: 2, QueueLength: 3,
			Holders: []conclave.Holder{
				{Fence: 7, Session: "s-1f2e3d4c5b6a798897a6b5c4d3e2f100", Owner: "cert:p", Host: "h1", PID: 1, Program: "p", Since: now, Revoked: true, Reason: "main\ntenance"},
				{Fence: 8, Host: "h2", PID: 2, Program: "q", Since: now, Revoked: true},
			},
			Waiters: []conclave.Waiter{{Host: "h3", PID: 3, Program: "r", Since: now}, {Host: "h4", PID: 4, Program: "s", Since: now, Shared: true}},
		},
		Past: []conclave.Ended{
			{Fence: 6, Host: "h5", PID: 5, Program: "t", Since: now.Add(-90 * time.Second), Until: now, How: "dropped", Reason: "maintenance", By: "cert:op"},
			{Fence: 5, Host: "h6", PID: 6, Program: "u", Since: now.Add(-1500 * time.Microsecond), Until: now, How: "expired"},
		},
	}
	var out strings.Builder
	if err := (ResourceClass{}).tell(&out, "a", x, "", waitGraph{}); err != nil {
		t.Fatal(err)
	}
	wantText(t, out.String(), `lock "a" is held by 2 of 2, 3 waiting

HOLDER FENCE  OWNER   HOST  PID  PROGRAM  SESSION     SINCE   ASKED TO LEAVE        SHARED
7             cert:p  h1    1    p        s-1f2e3d4c  0s ago  yes: "main\ntenance"  no
8             -       h2    2    q        -           0s ago  yes                   no

QUEUE  HOST  PID  PROGRAM  SESSION  SINCE   SHARED
1      h3    3    r        -        0s ago  no
2      h4    4    s        -        0s ago  yes
and 1 more

PAST FENCE  HOST  PID  PROGRAM  ENDED   HELD FOR  HOW
6           h5    5    t        0s ago  1m30s     dropped: it did not leave in time, asked to leave: maintenance, by cert:op
5           h6    6    u        0s ago  2ms       session not renewed in time
`)
}

// The names of fields are those of the HTTP interface.
func TestWhyNamesHomesAsHTTPDoes(t *testing.T) {
	x := conclave.Explanation{Algorithm: "raymond", Prefix: "r/", Homes: []conclave.AtHome{{Server: 1, Held: true, QueueLength: 2}}}
	text, err := json.Marshal(forms.ExplanationOf("r/a", x, "", nil).Homes)
	if err != nil {
		t.Fatal(err)
	}
	wantText(t, string(text), `[{"server":1,"held":true,"queue_length":2}]`)
}

// While a server does not answer, one of its clients may hold the lock.
func TestWhyWithASilentServer(t *testing.T) {
	x := conclave.Explanation{Algorithm: "raymond", Prefix: "r/", Homes: []conclave.AtHome{
		{Server: 1, QueueLength: 2}, {Server: 2, Problem: "connection refused"}, {Server: 3, Problem: "connection refused"},
	}}
	var out strings.Builder
	if err := (ResourceClass{}).tell(&out, "r/a", x, "", waitGraph{}); err != nil {
		t.Fatal(err)
	}
	wantText(t, out.String(), `lock "r/a": unknown whether it is free: servers 2 and 3 do not answer; a lock that a client there holds is free when the lease of the server has ended
guarded by raymond, like all locks that start with "r/"; the servers report:
  server 1: 2 wait
  server 2 does not answer: connection refused
  server 3 does not answer: connection refused
`)
}

func TestWhyTellsOfAnElection(t *testing.T) {
	now := time.Now()
	election := ResourceClass{Election: true}
	var out strings.Builder
	x := conclave.Explanation{Held: true, Resource: conclave.Resource{
		Limit:   1,
		Holders: []conclave.Holder{{Fence: 7, Host: "h1", PID: 1, Program: "p", Since: now, Value: []byte("x:1"), Priority: -2}},
	}}
	if err := election.tell(&out, "e", x, "", waitGraph{}); err != nil {
		t.Fatal(err)
	}
	wantText(t, out.String(), `election "e" is led by 1, nobody waits

HOLDER FENCE  HOST  PID  PROGRAM  SESSION  SINCE   ASKED TO LEAVE  PRIORITY  VALUE
7             h1    1    p        -        0s ago  no              -2        x:1
`)
	out.Reset()
	if err := election.tell(&out, "e", conclave.Explanation{}, "", waitGraph{}); err != nil {
		t.Fatal(err)
	}
	wantText(t, out.String(), "election \"e\": nobody leads it, and no past hold is remembered\n")
}

// While the guard of a lock changes, it can have waiters and no holder.
func TestWhyTellsOfWaitersWithoutHolder(t *testing.T) {
	lock := ResourceClass{}
	x := conclave.Explanation{Resource: conclave.Resource{
		Name: "a/x", Limit: 1, QueueLength: 2, Waiters: []conclave.Waiter{{Host: "h1", PID: 1, Program: "p", Since: time.Now()}},
	}}
	var out strings.Builder
	if err := lock.tell(&out, "a/x", x, "its guard changes", waitGraph{}); err != nil {
		t.Fatal(err)
	}
	wantText(t, out.String(), `lock "a/x": nobody holds it, 2 waiting, and no past hold is remembered; its guard changes

QUEUE  HOST  PID  PROGRAM  SESSION  SINCE   SHARED
1      h1    1    p        -        0s ago  no
and 1 more
`)
	if v := forms.ExplanationOf("a/x", x, "", nil); v.Held == nil || len(v.Held.Waiters) != 1 {
		t.Errorf("as JSON: %+v", v)
	}
}

// held is a lock that one process holds.
func held(name string, fence uint64, waiting uint32) conclave.Resource {
	return conclave.Resource{Name: name, Limit: 1, QueueLength: waiting, Holders: []conclave.Holder{{Fence: fence, PID: 1, Program: "p", Host: "h"}}}
}

// A watch that begins again sends everything that is held again, in parts. Unchanged
// holds are not printed twice, and holds that ended meanwhile are printed.
func TestNewsAfterAReset(t *testing.T) {
	n := newNews()
	for _, step := range []struct {
		change conclave.Changes
		want   string
	}{
		{conclave.Changes{Reset: true, More: true, Resources: []conclave.Resource{held("a", 1, 0)}}, "a 1"},
		{conclave.Changes{Resources: []conclave.Resource{held("b", 2, 0), held("c", 3, 0)}}, "b 1, c 1"},
		{conclave.Changes{Resources: []conclave.Resource{held("b", 2, 5)}}, "b 1"},
		{conclave.Changes{Gone: []string{"c", "never seen"}}, "c 0"},
		{conclave.Changes{Reset: true, More: true, Resources: []conclave.Resource{held("b", 2, 5)}}, ""},
		{conclave.Changes{Resources: []conclave.Resource{held("d", 9, 0)}}, "d 1, a 0"},
		{conclave.Changes{Reset: true}, "b 0, d 0"},
	} {
		var told []string
		for _, r := range n.take(step.change) {
			told = append(told, r.Name+" "+ui.Number(uint32(len(r.Holders))))
		}
		if got := strings.Join(told, ", "); got != step.want {
			t.Errorf("%+v: told %q, want %q", step.change, got, step.want)
		}
	}
}

func TestSentences(t *testing.T) {
	lock, election := ResourceClass{}, ResourceClass{Election: true}
	several := held("s", 4, 2)
	several.Limit = 3
	several.Holders = append(several.Holders, conclave.Holder{Fence: 5, PID: 2, Program: "q", Host: "h", Revoked: true, Reason: "r"})
	shared := held("s", 4, 0)
	shared.Holders[0].Shared, shared.Holders[0].Revoked = true, true
	owned := held("o", 7, 0)
	owned.Holders[0].Owner = "cert:batch-7"
	led := held("e", 6, 0)
	led.Holders[0].Value = []byte("x:1")
	for _, c := range []struct{ got, want string }{
		{lock.sentence(held("a\x1b", 1, 0)), `"a\x1b": held by process 1 (p) on h, fence 1`},
		{lock.sentence(several), `s: held (at most 3) by process 1 (p) on h, fence 4 and by process 2 (q) on h, fence 5, asked to leave (r); 2 waiting`},
		{lock.sentence(shared), `s: shared by process 1 (p) on h, fence 4, asked to leave`},
		{lock.sentence(owned), `o: held by cert:batch-7 (says: p, process 1 on h), fence 7`},
		{lock.sentence(conclave.Resource{Name: "a"}), `a: free`},
		{election.sentence(led), `e: led by process 1 (p) on h, fence 6, value x:1`},
		{election.sentence(conclave.Resource{Name: "e"}), `e: nobody leads`},
	} {
		wantText(t, c.got, c.want)
	}
}

func TestOnlyWhoWasAskedIsAwaited(t *testing.T) {
	r := &releaser{fence: 7}
	for _, c := range []struct {
		holder conclave.Holder
		want   bool
	}{
		{conclave.Holder{Fence: 7, Revoked: true}, true}, {conclave.Holder{Fence: 7}, false}, {conclave.Holder{Fence: 8, Revoked: true}, false},
	} {
		if got := r.meant(c.holder); got != c.want {
			t.Errorf("%+v: %t", c.holder, got)
		}
	}
	past := []conclave.Ended{{Fence: 9}, {Fence: 7, How: "released"}}
	ended := endedAmong(conclave.Explanation{Past: past}, []conclave.Holder{{Fence: 7}})
	if !slices.Equal(ended, []jsonform.Ended{{Fence: 7, How: "released"}}) {
		t.Errorf("ended: %+v", ended)
	}
}
