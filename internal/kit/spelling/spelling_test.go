package spelling

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"lamport", "lamport-clock", "raymond", "token-ring"}
	for name, want := range map[string]string{
		"raymnod":    "raymond",
		"lamprot":    "lamport",
		"token ring": "token-ring",
		"lam":        "lamport", // of those that begin so, the shortest
		"token":      "token-ring",
		"paxos":      "",
		"":           "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("%q is taken for %q, want %q", name, got, want)
		}
	}
}
