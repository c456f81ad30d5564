//go:build !linux

package cli

// restWell does nothing: timer slack exists only on Linux.
func restWell() {}

func leaveFirstThread() {}
