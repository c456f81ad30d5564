package lease

import "slices"

// Streams are the streams over which the last requests of a session came, the newest first,
// each once; 0 means none. A client sends requests over the stream in use. If it suspects that
// stream to be dead, it also sends unanswered requests over others, and may come back.
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

// With returns the streams with the given one as the newest.
func (s Streams) With(stream uint64) Streams {
	at := slices.Index(s[:], stream)
	if at < 0 {
		at = len(s) - 1
	}
	copy(s[1:at+1], s[:at])
	s[0] = stream
	return s
}
