package main

import (
	"github.com/conclave-io/conclave/lab/check"
	"github.com/conclave-io/conclave/process"
)

// elections are the searches of elections. Where processes crash, whoever follows a
// leader that is down is asked for another, sooner or later.
var elections = []row{
	{name: "chang-roberts", n: 6, entries: 1},
	{name: "chang-roberts", n: 6, entries: 1, note: "reduced", change: reduced},
	{name: "chang-roberts", n: 6, entries: 1, note: "of each set of processes on each ring", each: everyRing},
	{name: "chang-roberts-printed", n: 2, entries: 1, note: "valid leader", change: lonely, violated: true},
	{name: "chang-roberts-repaired", n: 4, entries: 1},
	{name: "chang-roberts-repaired", n: 3, entries: 1, change: crashes(1)},
	{name: "le-lann", n: 6, entries: 1},
	{name: "le-lann", n: 5, entries: 1, note: "of each set of processes on each ring", each: everyRing},
	{name: "le-lann", n: 2, entries: 1, change: unordered, violated: true},
	{name: "hirschberg-sinclair", n: 4, entries: 1},
	{name: "hirschberg-sinclair", n: 4, entries: 1, note: "of each set of processes on each ring", each: everyRing},
	{name: "hirschberg-sinclair", n: 5, entries: 1, note: "of 1 or 2 processes in each position to each other", each: places(1, 2)},
	{name: "peterson", n: 6, entries: 1},
	{name: "peterson", n: 5, entries: 1, note: "of each set of processes on each ring", each: everyRing},
	{name: "peterson", n: 3, entries: 1, change: unordered, violated: true},
	{name: "franklin", n: 4, entries: 1},
	{name: "franklin", n: 4, entries: 1, note: "of each set of processes on each ring", each: everyRing},
	{name: "ring-list", n: 4, entries: 1, note: "reduced", change: reduced},
	{name: "ring-list", n: 5, entries: 1, note: "of 1 to 3 processes in each position to each other", each: places(1, 3)},
	{name: "ring-list", n: 5, entries: 1, note: "of 1 to 3 processes in each position to each other, reduced", change: reduced, each: places(1, 3)},
	{name: "ring-list", n: 3, entries: 1, change: crashes(1)},
	{name: "ring-active-list", n: 4, entries: 1},
	{name: "ring-active-list", n: 4, entries: 1, note: "reduced", change: reduced},
	{name: "ring-active-list", n: 5, entries: 1, note: "of 1 to 3 processes in each position to each other, reduced", change: reduced, each: places(1, 3)},
	{name: "by-load", n: 4, entries: 1, note: "of 1 to 3 processes in each position to each other", each: places(1, 3)},
	{name: "by-load-ring", n: 5, entries: 1},
	{name: "by-load-bully", n: 3, entries: 1, change: crashes(1)},
	{name: "bully", n: 3, entries: 1, change: crashes(1)},
	{name: "bully", n: 3, entries: 1, change: crashes(2)},
	{name: "bully", n: 4, entries: 1, note: "of one process, whichever", change: crashes(2), each: subsets(1, 1)},
	{name: "bully", n: 3, entries: 1, change: anyTime, violated: true},
	{name: "bully", n: 3, entries: 1, note: "single leader", change: single},
	{name: "bully", n: 3, entries: 1, note: "single leader", change: singleTooSoon, violated: true},
	{name: "bully", n: 4, entries: 1, note: "single leader", change: singleTooSoon, violated: true},
	{name: "bully", n: 3, entries: 1, note: "end of the election", change: endTooSoon},
	{name: "super-peer", n: 4, entries: 1, note: "prefix=1, its assertions alone", change: superPeers},
}

// superPeers checks what super-peers assert of themselves: their promises hold once
// nobody has come or gone for some periods, and of time the checker knows nothing.
func superPeers(c *check.Config) {
	c.Properties, c.Crashes, c.Timeouts = []process.Property{}, 1, 5
	c.Process.Options = []process.OptionValue{{Name: "prefix", Value: "1"}}
}

// single asks whether two that are up ever take themselves for the leader, which no
// Spec promises: with bully it needs timers that wait for all answers.
func single(c *check.Config) { c.Properties = []process.Property{process.SingleLeader} }

func singleTooSoon(c *check.Config) {
	single(c)
	anyTime(c)
}

// endTooSoon checks whether all processes still follow one leader in the end.
func endTooSoon(c *check.Config) {
	anyTime(c)
	c.Properties, c.Timeouts = []process.Property{process.LeaderTermination}, 2
}

// lonely asks whether the leader is the best one if the lowest alone calls.
func lonely(c *check.Config) {
	c.Requesters, c.Properties = []process.ID{0}, []process.Property{process.LeaderValidity}
}
