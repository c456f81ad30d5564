package cli

// The size of a terminal that does not report its own.
const (
	defaultWidth  = 80
	defaultHeight = 24
)
