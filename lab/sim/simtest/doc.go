// Package simtest tests algorithms in the simulator: the same algorithm, the
// same claims, over as many random schedules as there is time for.
package simtest
