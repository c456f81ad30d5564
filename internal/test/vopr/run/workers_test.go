package main

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// TestMain lets the test program be the command, and the processes that it starts.
func TestMain(m *testing.M) {
	const command = "VOPR_RUN_COMMAND"
	if os.Getenv(command) != "" {
		main()
		return
	}
	os.Setenv(command, "1")
	os.Exit(m.Run())
}

func play(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program, args...).CombinedOutput()
	speed := regexp.MustCompile(`(?m)^.*simulated hours per hour\n`) // differs from run to run
	return speed.ReplaceAllString(string(out), ""), err
}

// TestWorkers checks that the figures do not depend on the number of processes.
func TestWorkers(t *testing.T) {
	var first string
	for _, workers := range []string{"1", "2", "5"} {
		out, err := play(t, "-seed=3", "-hours=0.005", "-seconds=4", "-workers="+workers)
		if err != nil {
			t.Fatalf("%s workers: %v\n%s", workers, err, out)
		}
		if first == "" {
			first = out
		}
		if out != first {
			t.Errorf("with %s workers:\n%s\nwith one:\n%s", workers, out, first)
		}
	}
}
