package served

import (
	"strings"
	"testing"
)

func TestWatch(t *testing.T) {
	for _, d := range Detectors {
		for _, e := range Elections {
			if s, err := Watch(d.Name + "+" + e.Name); err != nil || s.Depth() != 2 {
				t.Errorf("%s under %s: %v", d.Name, e.Name, err)
			}
		}
	}
	for name, want := range map[string]string{
		"swim+buly": `did you mean "swim+bully"?`,
		"bully":     "name a detector (heartbeat, ",
		"swim+raft": "and an election (bully, ",
		"":          "name a detector",
	} {
		if _, err := Watch(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

func TestLock(t *testing.T) {
	if Lock("total-order") == nil || Lock("lease") != nil {
		t.Error("servers run total-order, and not lease")
	}
}
