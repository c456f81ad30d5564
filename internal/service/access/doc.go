// Package access decides who may do what. It is pure: every server that applies the same
// changes in the same order makes the same decisions.
//
// A caller is identified by its principal, which it has proven. Bindings give roles to
// principals. The rules of a role allow or deny verbs on the names that start with a
// prefix, or on one exact name. All rules of a principal are evaluated together, from the
// shortest prefix to the longest, then those for the exact name. So for each verb the
// longest match decides; deny takes precedence over allow on the same prefix or name;
// what no rule matches is denied.
//
// A State never changes. A change returns a new one, which shares the unchanged parts. Any
// goroutine may read a State.
package access
