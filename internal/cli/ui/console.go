package ui

// The size of a terminal that does not report its own.
const (
	defaultWidth  = 80
	DefaultHeight = 24
)
