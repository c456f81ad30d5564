// Package large tests servers with a large state: three real processes, up to a
// million held locks, readers, and deaths. It uses what the measurements use, so it is
// in this module. Run it with make long-large.
package large
