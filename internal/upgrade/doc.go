// Package upgrade tests that releases follow one another on running servers: with two
// real binaries, as processes, under load.
//
// The two are a release of releases.txt and this tree, and this tree and the release
// to come: the same sources with one level more, one entry more, which is written from
// that level on, and a snapshot that has more in it.
package upgrade
