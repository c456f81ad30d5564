package audit

import "time"

const (
	// HungAfter is how long a write may take before the log counts as one that cannot be
	// written, in ns.
	HungAfter = int64(2 * time.Second)
	// handOverEvery is how long a server that cannot write its log, but leads once more,
	// keeps the leadership before it tries to hand it over again, in ns. Otherwise servers
	// that all cannot write would pass it around.
	handOverEvery = int64(time.Minute)
)

// Health says whether an audit log can be written, and what a server does that has to be
// able to. Times are in ns of any clock that nobody sets.
type Health struct {
	begun  int64  // of the attempt to write that has not ended, or 0
	why    string // why the last one failed
	handed int64  // when leadership was handed over, or 0
}

// Begin says that an attempt to write begins.
func (h *Health) Begin(now int64) { h.begun = now }

// End says that it has ended: why is empty if all was written.
func (h *Health) End(why string) { h.begun, h.why = 0, why }

// Failing returns why the log cannot be written, or nothing if it can.
func (h *Health) Failing(now int64) string {
	if h.begun != 0 && now-h.begun >= HungAfter {
		return "a write does not end"
	}
	return h.why
}

// HandsOver reports whether a server that leads, and has to be able to write its log, hands
// its leadership over now.
func (h *Health) HandsOver(now int64, leads bool) bool {
	switch {
	case h.Failing(now) == "":
		h.handed = 0
	case leads && (h.handed == 0 || now-h.handed >= handOverEvery):
		h.handed = now
		return true
	}
	return false
}
