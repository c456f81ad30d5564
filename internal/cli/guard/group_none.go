//go:build !unix

package guard

import (
	"os"
	"os/exec"
	"syscall"
)

// group replaces process groups, which this system does not have.
type group struct{ foreground bool }

// Foreground is false where there are no process groups.
func Foreground() bool { return false }

func ownGroup(*exec.Cmd, bool) group { return group{} }

func (group) start(cmd *exec.Cmd) error { return cmd.Start() }

func (group) restore() {}

// signalGroup kills the command for any signal, because this system has no other signals.
func signalGroup(cmd *exec.Cmd, _ syscall.Signal) { _ = cmd.Process.Kill() }

func groupLeft(*exec.Cmd) bool { return false }

func statusOf(state *os.ProcessState) (int, syscall.Signal) { return state.ExitCode(), 0 }
