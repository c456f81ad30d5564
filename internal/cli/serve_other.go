//go:build !linux

package cli

// restWell does something on Linux only.
func restWell() {}

func leaveFirstThread() {}
