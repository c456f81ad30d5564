package lab

import "testing"

// What the process uses counts, also what this test itself has allocated.
func TestAllowance(t *testing.T) {
	if !newAllowance(1 << 40).room(1 << 30) {
		t.Error("no room for 1 GiB in 1 TiB")
	}
	a := newAllowance(0)
	a.limit = a.used() + 64<<20
	if !a.room(16 << 20) {
		t.Error("no room for a quarter of what is left")
	}
	if a.room(512 << 20) {
		t.Error("room for more than is left")
	}
	if newAllowance(1 << 20).room(0) {
		t.Error("a process with all of Go's memory has room in 1 MiB")
	}
}
