// Package selftest tests the repository itself: which package may import which, what the
// deterministic packages may not do, how long a function may be, which words and habits
// are not allowed, and whether the documents are right about files and commands.
//
// Every check is a function from a Tree to complaints. Each complaint is one line with
// the file and line, what is wrong, and what is expected. The checks themselves are
// tested on small trees with one fault each, so that a check that finds nothing any more
// is noticed.
package selftest
