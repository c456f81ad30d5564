// Package audit says what the audit log of a server has, without input and output: which
// line comes next, what a line looks like, and whether the lines of files are those that
// the servers wrote.
//
// # What is promised
//
//   - A server writes every record of the replicated state that it applies, in order, once
//     for each count of a refusal that it writes.
//   - What is missing between two lines is announced by a line of its own.
//   - A line that was altered, removed or moved does not pass the check of the chain, unless
//     all lines behind it were altered too. Then the records that the cluster keeps, and
//     the files of the other servers, differ.
package audit
