package guard

// Command is a guarded command on this machine.
type Command struct {
	// Environ is the environment with which it was started, and Left are its processes.
	Environ []string
	Left    []Process
}

// Ancestor is a process above this one.
type Ancestor struct {
	PID int
	// Environ is the environment with which the process was started.
	Environ []string
	// Hidden means that this process may not read it.
	Hidden bool
}
