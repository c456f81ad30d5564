// Package admin carries out what operators ask of a server: changes of the members, of the rules of
// access and of the level, backups, and the end of sessions.
package admin

import (
	"github.com/conclave-io/conclave/internal/service/admission"
	"github.com/conclave-io/conclave/internal/service/auditlog"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/guarded"
	"github.com/conclave-io/conclave/internal/service/metrics"
	"github.com/conclave-io/conclave/internal/service/node"
	"github.com/conclave-io/conclave/internal/service/query"
)

// Config sets up Acts.
type Config struct {
	// Server is the id of this server, Cluster and ClusterName are the identity and the name of its
	// cluster, and Version is what a backup says of its version.
	Server                        uint64
	Cluster, ClusterName, Version string

	Node    *node.Node
	Forward *forward.Forwarder
	Guarded *guarded.Door
	Query   *query.Calls
	Gate    *admission.Gate
	Metrics *metrics.Metrics
	Audit   *auditlog.Log
}

// Acts are the calls of operators.
type Acts struct{ cfg Config }

// New returns the calls of a server.
func New(cfg Config) *Acts { return &Acts{cfg} }
