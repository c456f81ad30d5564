// Package access says who may do what. It is pure: every server that applies the same
// changes in the same order decides alike.
//
// A caller is a principal, which it has proven. Bindings give principals roles, and the
// rules of a role allow or deny verbs on the names that begin with a prefix, or on one
// name. All rules of a principal are read together: from the shortest prefix to the
// longest, then those on the exact name, each allows and denies its verbs. So the longest
// match decides, for each verb alone; deny wins over allow at the same place; and what no
// rule matches is denied.
//
// A State never changes. Change returns another one, which shares what is the same. Any
// goroutine may read a State.
package access
