package local

import (
	"os/exec"
	"syscall"
)

// Prepare makes a process end when this one does, however it ends, and keeps
// the signals of the terminal from it: Ctrl-C is for whoever runs the cluster.
func Prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// wake lets a stopped server continue, so that it can end.
const wake = syscall.SIGCONT
