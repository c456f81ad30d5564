package trace_test

import (
	"testing"

	"github.com/conclave-io/conclave/lab/trace"
	"github.com/conclave-io/conclave/process"
)

func TestSentences(t *testing.T) {
	one, two := process.Label(1), process.Label(2)
	req := &trace.Message{Name: "REQ", From: 2, To: &one, Text: "REQ ts=1"}
	for _, c := range []struct {
		record trace.Record
		want   string
	}{
		{trace.Record{Process: 1, Kind: "deliver", Message: req, Rules: []string{"R2"}, Effects: []trace.Effect{
			{Kind: "send", Message: &trace.Message{Name: "REPLY", From: 1, To: &two, Text: "REPLY ts=2"}}, {Kind: "arm", Timer: "reply"},
		}}, "1 gets REQ ts=1 from 2 (R2), sends REPLY ts=2 to 2"},
		{trace.Record{Process: 1, Kind: trace.Drop, Message: req, Note: "partition"}, "REQ ts=1 from 2 to 1 is lost: partition"},
		{trace.Record{Process: 2, Kind: "acquire", Effects: []trace.Effect{{Kind: "grant", Fence: "7"}}}, "2 asks to enter, enters with fence 7"},
		{trace.Record{Process: 2, Kind: "acquire", Note: "refused: the client waits"}, "2 asks to enter: refused: the client waits"},
		{trace.Record{Process: 1, Kind: "suspect", Peer: &two}, "1 suspects 2"},
		{trace.Record{Process: 1, Kind: "fire", Timer: "reply", Effects: []trace.Effect{{Kind: "broadcast", Cut: true, Message: req}}},
			"1's timer reply runs out, sends REQ ts=1 to all others (cut off by the crash)"},
	} {
		if got := c.record.Sentence(); got != c.want {
			t.Errorf("%q, it must be %q", got, c.want)
		}
	}
}
