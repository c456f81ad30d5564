// Package audit decides what the audit log of a server contains, without I/O: which line
// comes next, what a line looks like, and whether the lines of files are those that the
// servers wrote.
//
// # What is promised
//
//   - A server writes every record of the replicated state that it applies, in order. A
//     refusal that is repeated is written once for each count that the server writes.
//   - Lines that are missing between two lines are announced by a line.
//   - A line that was altered, removed or moved fails the check of the chain, unless
//     all lines behind it were altered too. In that case the records that the cluster keeps
//     and the files of the other servers differ.
package audit
