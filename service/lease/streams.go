package lease

import "slices"

// Streams are those over which the requests of a session came last, the newest first and
// each once; 0 is none. A client asks over the stream in use, but while it suspects that
// of being dead it sends what is unanswered over others too, and may come back.
type Streams [4]uint64

// Without returns the streams without one of them.
func (s Streams) Without(stream uint64) Streams {
	for i := range s {
		if s[i] == stream {
			s[i] = 0
		}
	}
	return s
}

// With returns the streams with one that is the newest now.
func (s Streams) With(stream uint64) Streams {
	at := slices.Index(s[:], stream)
	if at < 0 {
		at = len(s) - 1
	}
	copy(s[1:at+1], s[:at])
	s[0] = stream
	return s
}
