// Package processtest tests algorithms. [Conform] checks in one test line that a
// Spec and its machines keep the contract of package process; [Script] drives an
// algorithm by hand from text files, one message at a time:
//
//	func TestConform(t *testing.T) { processtest.Conform(t, Spec) }
//	func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }
//
// [Cluster] is a host for tests of allocations, and of costs that a Spec does not claim.
// Package lab/measure measures the costs that it claims.
package processtest
