package attack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// lookForTokens is a script for a command under a lock. It prints its environment and arguments.
// Then it prints those of all processes that it can inspect, and their open files, in few commands:
// a busy machine has thousands of open files.
const lookForTokens = `echo "own environment"
env
echo "all processes"
{
  cat /proc/[0-9]*/environ | tr '\0' '\n'
  cat /proc/[0-9]*/cmdline | tr '\0' '\n'
  find /proc/[0-9]*/fd -printf '%l\n'
} 2> /dev/null
true
`

// searchUnderALock runs a command that searches for the token with which the lock was acquired.
// conclave has read the token from a variable, or from a file.
func searchUnderALock(w *world) {
	r := w.withRules(1)
	binary, script := w.binary(), filepath.Join(w.TempDir(), "look.sh")
	if err := os.WriteFile(script, []byte(lookForTokens), 0o600); err != nil {
		w.Fatal(err)
	}
	file := filepath.Join(w.TempDir(), "token-of-bob")
	if err := os.WriteFile(file, []byte(r.tokens["bob"]+"\n"), 0o600); err != nil {
		w.Fatal(err)
	}
	secret := r.tokens["bob"][22:]
	for _, command := range []string{"lock", "elect"} {
		for variable, value := range map[string]string{"CONCLAVE_TOKEN": r.tokens["bob"], "CONCLAVE_TOKEN_FILE": file} {
			cmd := exec.CommandContext(w.within(), binary, command, "reports/a", "--servers", r.cluster.Address(1), "--", "sh", script)
			cmd.Env = append(os.Environ(), variable+"="+value)
			said, err := cmd.CombinedOutput()
			out := string(said)
			if err != nil {
				w.Errorf("%s by %s: %v\n%s", command, variable, err, out)
				continue
			}
			own, all, _ := strings.Cut(out, "all processes\n")
			if strings.Contains(own, "CONCLAVE_TOKEN") {
				w.Errorf("%s: the command has %s in its environment:\n%s", command, variable, own)
			}
			if strings.Contains(out, secret) {
				w.Errorf("%s by %s: the command finds the token", command, variable)
			}
			if at := strings.Index(all, "\n"+file+"\n"); at >= 0 {
				w.Errorf("%s: the file with the token is open", command)
			}
			// It must have searched the environment of conclave. Otherwise the search would prove
			// nothing.
			if !strings.Contains(own, "CONCLAVE_FENCE=") || !strings.Contains(all, variable+"=") {
				w.Errorf("%s by %s: the command has not found where the token was:\n%s", command, variable, own)
			}
		}
	}
}
