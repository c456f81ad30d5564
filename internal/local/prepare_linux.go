package local

import (
	"os/exec"
	"syscall"
)

// prepare makes a server outlive neither this process nor be reached by the
// signals of its terminal: Ctrl-C is for whoever runs the cluster.
func prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// wake lets a stopped server go on, so that it can end.
const wake = syscall.SIGCONT
