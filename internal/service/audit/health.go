package audit

import "time"

const (
	// HungAfter is how long a write may take before the log counts as not writable, in ns.
	HungAfter = int64(2 * time.Second)
	// handOverEvery is how long a server that cannot write its log but was elected again
	// keeps the leadership before it tries to hand it over again, in ns. Without that
	// pause, servers that cannot write would pass the leadership around.
	handOverEvery = int64(time.Minute)
)

// Health tracks whether an audit log can be written, and what a server does whose audit log
// is required. Times are in ns of a monotonic clock.
type Health struct {
	begun  int64  // when the attempt to write began that has not ended, or 0
	why    string // why the last attempt failed
	handed int64  // when leadership was last handed over, or 0
}

// Begin notes that an attempt to write begins.
func (h *Health) Begin(now int64) { h.begun = now }

// End notes that it has ended; why is empty if everything was written.
func (h *Health) End(why string) { h.begun, h.why = 0, why }

// Failing returns why the log cannot be written, or "" if it can.
func (h *Health) Failing(now int64) string {
	if h.begun != 0 && now-h.begun >= HungAfter {
		return "a write does not end"
	}
	return h.why
}

// HandsOver reports whether a server whose audit log is required hands its leadership over
// now.
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
