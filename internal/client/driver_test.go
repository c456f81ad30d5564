package client

import "testing"

// What is told to terminals has no control characters, or the servers refuse it.
func TestClippedTextsAreTakenByServers(t *testing.T) {
	if got := clip("a\x1b[2J\x00b\xff\u0085é"); got != "a[2Jbé" {
		t.Errorf("clipped to %q", got)
	}
}
