//go:build !linux

package servers

// restWell does nothing: timer slack exists only on Linux.
func restWell() {}

// LeaveFirstThread does nothing on this system.
func LeaveFirstThread() {}
