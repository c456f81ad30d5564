// Package selftest tests the repository itself: which package may import which,
// what the deterministic packages may not do, how long a function may be, which
// words and habits have no place here, and whether the documents tell the
// truth about files and commands.
//
// Every check is a function from a Tree to complaints, each one line that names
// the place, what is wrong and what would be right. The checks are tested
// themselves, on small trees with one fault each, so that a check that has
// gone blind is noticed.
package selftest
