// Package processtest tests algorithms. [Conform] checks in one test line that a
// Spec and its machines keep the contract of package process; [Script] drives an
// algorithm by hand from text files, one message at a time:
//
//	func TestConform(t *testing.T) { processtest.Conform(t, Spec) }
//	func TestScripts(t *testing.T) { processtest.Script(t, Spec, "testdata") }
package processtest
