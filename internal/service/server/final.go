package server

import (
	"errors"

	"github.com/conclave-io/conclave/internal/service/peering"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/store"
	"github.com/conclave-io/conclave/internal/service/transport"
	"github.com/conclave-io/conclave/internal/service/version"
)

// Removed reports whether a server stopped because it was removed from the cluster.
func Removed(err error) bool {
	return isA[*replica.RemovedError](err)
}

func isA[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

// Final reports whether a server ended, or did not start, for a reason that a restart does
// not remove: its data directory is damaged, belongs to another server, or has a format or
// level that this release does not read; it was removed from the cluster; another process
// runs with its data; or its state differs from that of the others.
func Final(err error) bool {
	refused, is := errors.AsType[*transport.Refusal](err)
	return Removed(err) || isA[*version.Error](err) || isA[*replica.DivergedError](err) ||
		is && (refused.Code == peering.LevelUnknown || refused.SharesData()) || isA[*store.CorruptError](err) || isA[*store.FormatError](err) ||
		isA[*store.ClusterError](err) || isA[*store.ServerError](err) || isA[*store.DirectoryError](err)
}
