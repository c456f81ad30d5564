// Package simtest tests algorithms in the simulator: the same algorithm, the same claims,
// over as many random schedules as time allows.
package simtest
