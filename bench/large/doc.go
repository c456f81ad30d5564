// Package large tests servers with a large state: three real processes, up to a million held locks,
// readers, and crashes. It is in this module because it uses packages of the measurements. Run it
// with make long-large.
package large
