// Package query answers what clients and operators ask a server: which locks, elections and sessions
// there are, who waits for whom, what the audit log says, and how the servers do. It changes nothing.
package query

import (
	"time"

	"github.com/conclave-io/conclave/internal/service/admission"
	"github.com/conclave-io/conclave/internal/service/certs"
	"github.com/conclave-io/conclave/internal/service/forward"
	"github.com/conclave-io/conclave/internal/service/guarded"
	"github.com/conclave-io/conclave/internal/service/metrics"
	"github.com/conclave-io/conclave/internal/service/node"
)

// Config sets up Calls.
type Config struct {
	// Server is the id of this server, Cluster the identity of its cluster, and Version what the
	// server reports as its version.
	Server           uint64
	Cluster, Version string
	// Started is when this server started.
	Started time.Time
	// Founders are the addresses of the servers named at the start.
	Founders map[uint64]string

	Node    *node.Node
	Forward *forward.Forwarder
	Guarded *guarded.Door
	Gate    *admission.Gate
	Metrics *metrics.Metrics
	Certs   *certs.Store
	// Go runs a task that the server waits for before it stops.
	Go func(task func())
}

// Calls are the calls that ask.
type Calls struct {
	cfg     Config
	reports reports
}

// New returns the calls of a server.
func New(cfg Config) *Calls { return &Calls{cfg: cfg} }
