package guard

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOther(t *testing.T) {
	cmd := exec.Command("sleep", "300")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o, err := Find(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Find(cmd.Process.Pid)
	if err != nil || again.Started != o.Started || o.Started == 0 || o.Owner != uint32(os.Getuid()) {
		t.Errorf("it was started at %d, and then %+v, %v", o.Started, again, err)
	}
	if err := o.Terminate(); err != nil {
		t.Error(err)
	}
	<-o.Ended()
	<-again.Ended()
	if _, err := Find(cmd.Process.Pid); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a zombie is found: %v", err)
	}
	if err := cmd.Wait(); cmd.ProcessState.Sys() == nil {
		t.Error(err)
	}
	if err := o.Terminate(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a process that has ended: %v", err)
	}
	o.Close()
	again.Close()
	for _, pid := range []int{cmd.Process.Pid, 1 << 22, -1, 0} {
		if _, err := Find(pid); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("process %d: %v", pid, err)
		}
	}
	self, err := startOf(os.Getpid())
	if parent, e := startOf(unix.Getppid()); err != nil || e != nil || parent > self {
		t.Errorf("the parent was started at %d, %v, this process at %d, %v", parent, e, self, err)
	}
}
