package check

// Path is a run, step by step.
type Path struct{}
