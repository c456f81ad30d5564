// Package upgrade tests upgrades between releases on running servers: with two real binaries,
// as processes, under load.
//
// There are two pairs: a release in releases.txt and this tree, and this tree and the next
// release. The next release is simulated: the same sources with one more level, one more kind of
// entry, which is written from that level on, and a larger snapshot.
package upgrade
