package metrics

import (
	"runtime"
	"strconv"
	"time"

	"github.com/conclave-io/conclave/internal/kit/histogram"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/clocks"
	"github.com/conclave-io/conclave/internal/service/host"
	"github.com/conclave-io/conclave/internal/service/registry"
	"github.com/conclave-io/conclave/internal/service/registry/expect"
	"github.com/conclave-io/conclave/internal/service/replica"
	"github.com/conclave-io/conclave/internal/service/transport"
	"github.com/conclave-io/conclave/internal/service/version"
)

// readings read the values of metrics, by name. Each name is in ops.Metrics.
var readings = map[string]probe{
	"conclave_leader":                       one(func(v *snapshot) uint64 { return v.node.Leader.Load() }),
	"conclave_is_leader":                    truth(func(v *snapshot) bool { return v.node.Leader.Load() == v.of.ID }),
	"conclave_leader_changes_total":         one(func(v *snapshot) uint64 { return v.node.LeaderChanges.Load() }),
	"conclave_term":                         one(func(v *snapshot) uint64 { return v.Term }),
	"conclave_commit_index":                 one(func(v *snapshot) uint64 { return v.Commit }),
	"conclave_applied_index":                one(func(v *snapshot) uint64 { return v.node.Applied.Load() }),
	"conclave_access_mode":                  accessModes,
	"conclave_peers_connected":              one(func(v *snapshot) int { return len(v.of.Node.Connected()) }),
	"conclave_requests_total":               one(func(v *snapshot) uint64 { return v.node.Requests.Load() }),
	"conclave_replies_total":                one(func(v *snapshot) uint64 { return v.node.Replies.Load() }),
	"conclave_exhausted_total":              one(func(v *snapshot) uint64 { return v.node.Exhausted.Load() }),
	"conclave_rate_refusals_total":          one(func(v *snapshot) int64 { return v.counts.RateRefusals.Load() }),
	"conclave_streams":                      one(func(v *snapshot) int64 { return v.counts.Attached.Load() }),
	"conclave_watches":                      one(func(v *snapshot) int64 { return v.counts.Watching.Load() }),
	"conclave_relayed_streams":              one(func(v *snapshot) int64 { return v.counts.Relayed.Load() }),
	"conclave_pending_requests":             one(func(v *snapshot) int { return v.Pending }),
	"conclave_sessions":                     one(func(v *snapshot) int { return v.Sessions }),
	"conclave_locks":                        one(func(v *snapshot) int { return v.Locks }),
	"conclave_elections":                    one(func(v *snapshot) int { return v.Elections }),
	"conclave_waiters":                      one(func(v *snapshot) int { return v.Waiters }),
	"conclave_state_bytes":                  one(func(v *snapshot) int { return v.StateBytes }),
	"conclave_state_limit_bytes":            one(func(v *snapshot) int { return v.StateLimit }),
	"conclave_disk_stalled_seconds":         one(func(v *snapshot) float64 { return stalled(v, true) }),
	"conclave_apply_stalled_seconds":        one(func(v *snapshot) float64 { return stalled(v, false) }),
	"conclave_fsyncs_total":                 one(func(v *snapshot) uint64 { return v.node.Fsyncs.Load() }),
	"conclave_snapshots_total":              one(func(v *snapshot) uint64 { return v.node.Snapshots.Load() }),
	"conclave_view_epoch":                   one(func(v *snapshot) uint64 { return v.home.View.Epoch }),
	"conclave_view_members":                 one(func(v *snapshot) int { return len(v.home.View.Members) }),
	"conclave_view_changes_total":           labelled(host.Reasons[:], func(v *snapshot) []uint64 { return v.home.StartsFor[:] }),
	"conclave_view_pause_seconds":           one(func(v *snapshot) float64 { return seconds(v.home.Paused) }),
	"conclave_seat_remaining_seconds":       one(func(v *snapshot) float64 { return seconds(v.home.Remaining) }),
	"conclave_home_sessions":                one(func(v *snapshot) int { return v.home.Sessions }),
	"conclave_live_names":                   labelled([]string{"busy", "idle"}, func(v *snapshot) []int { return []int{v.home.Busy, v.home.Names - v.home.Busy} }),
	"conclave_live_entries_total":           one(func(v *snapshot) uint64 { return v.home.Entries }),
	"conclave_audit_records_total":          one(func(v *snapshot) uint64 { return v.recorded() }),
	"conclave_audit_lines_total":            one(func(v *snapshot) int64 { return v.of.Audit.Lines() }),
	"conclave_audit_write_errors_total":     one(func(v *snapshot) int64 { return v.of.Audit.Failures() }),
	"conclave_audit_last_timestamp_seconds": one(func(v *snapshot) float64 { return seconds(v.of.Audit.Newest()) }),
	"conclave_live_messages_total":          labelled([]string{"protocol", "other", "watch", "view"}, guardedMessages),
	"conclave_link_unacked":                 unacknowledged,
	"conclave_shunned_total":                labelled(replica.Whys[:], func(v *snapshot) []uint64 { return v.Shunned[:] }),
	"conclave_watch_doubted":                one(func(v *snapshot) int { return len(v.home.Watch.Doubted) }),
	"conclave_watch_suspicions_total":       one(func(v *snapshot) uint64 { return v.home.Watch.Suspicions }),
	"conclave_watch_failures_total":         one(func(v *snapshot) uint64 { return v.home.Watch.Failures }),
	"conclave_watch_trusts_total":           one(func(v *snapshot) uint64 { return v.home.Watch.Trusts }),
	"conclave_watch_elections_total":        one(func(v *snapshot) uint64 { return v.home.Watch.Elections }),
	"conclave_watch_messages_total":         one(func(v *snapshot) uint64 { return v.home.Watch.Messages }),
	"conclave_clock_offset_seconds":         ofClocks(false, func(e *clocks.Estimate) float64 { return seconds(e.Offset) }),
	"conclave_clock_error_seconds":          ofClocks(false, func(e *clocks.Estimate) float64 { return seconds(e.Error) }),
	"conclave_clock_drift_ratio":            ofClocks(true, func(e *clocks.Estimate) float64 { return e.Drift }),
	"conclave_clock_drift_error_ratio":      ofClocks(true, func(e *clocks.Estimate) float64 { return e.DriftError }),

	"conclave_sessions_opened_total":  one(func(v *snapshot) uint64 { return v.times.Opened }),
	"conclave_sessions_expired_total": one(func(v *snapshot) uint64 { return v.times.Over[registry.Expired] }),
	"conclave_sessions_closed_total": labelled([]string{"closed", "ended"}, func(v *snapshot) []uint64 {
		return []uint64{v.times.Over[registry.Closed], v.times.Over[registry.Dropped]}
	}),
	"conclave_grants_total": labelled(classNames, func(v *snapshot) []uint64 { return v.times.Grants[:] }),
	"conclave_holds_ended_total": labelled([]string{"released", "closed"}, func(v *snapshot) []uint64 {
		return []uint64{v.times.Ended[registry.Released], v.times.Ended[registry.Closed]}
	}),
	"conclave_holds_lost_total": labelled([]string{"expired", "dropped"}, func(v *snapshot) []uint64 {
		return []uint64{v.times.Ended[registry.Expired], v.times.Ended[registry.Dropped]}
	}),
	"conclave_quota_refusals_total":                 labelled(registry.QuotaKinds[:], func(v *snapshot) []uint64 { return v.times.Quotas[:] }),
	"conclave_revocations_total":                    labelled(registry.Motives[:], func(v *snapshot) []uint64 { return v.times.Revoked[:] }),
	"conclave_pauses_forgiven_seconds_total":        one(func(v *snapshot) float64 { return seconds(v.times.Forgiven) }),
	"conclave_peer_messages_dropped_total":          ofPeers(func(p transport.PeerState) float64 { return float64(p.Dropped) }),
	"conclave_peer_copies_refused_total":            ofPeers(func(p transport.PeerState) float64 { return float64(p.Copies) }),
	"conclave_peer_up":                              ofPeers(func(p transport.PeerState) float64 { return zeroOrOne(p.Up) }),
	"conclave_peer_lag_entries":                     lags,
	"conclave_build_info":                           buildInfo,
	"conclave_level":                                one(func(v *snapshot) uint32 { return v.of.Node.Level() }),
	"conclave_level_max":                            one(func(*snapshot) uint32 { return version.Max }),
	"conclave_ready":                                truth(func(v *snapshot) bool { return v.of.Ready() }),
	"conclave_certificate_expiry_timestamp_seconds": expiries,
	"conclave_token_expiry_timestamp_seconds":       tokenExpiries,
	"conclave_log_bytes":                            ofDisk(func(r *room) int64 { return r.log }),
	"conclave_snapshot_bytes":                       ofDisk(func(r *room) int64 { return r.snapshots }),
	"conclave_disk_free_bytes":                      ofFileSystem(func(r *room) int64 { return r.free }),
	"conclave_disk_size_bytes":                      ofFileSystem(func(r *room) int64 { return r.size }),
	"conclave_backup_last_timestamp_seconds":        lastBackup,
	"conclave_expect_period_seconds":                ofRules(func(e *registry.Expected, _ expect.Moment) float64 { return seconds(e.Period) }),
	"conclave_expect_idle_seconds":                  ofRules(func(e *registry.Expected, now expect.Moment) float64 { return seconds(e.Idle(now)) }),
	"conclave_expect_overdue":                       ofRules(func(e *registry.Expected, now expect.Moment) float64 { return zeroOrOne(e.Overdue(now)) }),
}

// timeReadings read the values of histograms, by name.
var timeReadings = map[string]timeProbe{
	"conclave_wait_seconds":      timesByClass(func(v *snapshot, class registry.Class) *histogram.Durations { return &v.times.Waits[class] }),
	"conclave_hold_seconds":      timesByClass(func(v *snapshot, class registry.Class) *histogram.Durations { return &v.times.Holds[class] }),
	"conclave_live_wait_seconds": times(func(v *snapshot) *histogram.Durations { return &v.home.Waits }),
	"conclave_commit_seconds":    times(func(v *snapshot) *histogram.Durations { return &v.times.Commits }),
	"conclave_fsync_seconds":     times(func(v *snapshot) *histogram.Durations { return &v.times.Fsyncs }),
	"conclave_snapshot_seconds":  times(func(v *snapshot) *histogram.Durations { return &v.times.Snapshots }),
}

// accessModes returns 1 for the access mode in force at a server.
func accessModes(v *snapshot, emit func(float64, ...string)) {
	for _, mode := range []access.Mode{access.Unset, access.Open, access.Closed} {
		emit(zeroOrOne(v.of.AccessMode() == mode), mode.String())
	}
}

// ofRules reads a metric of each rule about a name.
func ofRules(read func(e *registry.Expected, now expect.Moment) float64) probe {
	return func(v *snapshot, emit func(float64, ...string)) {
		now := expect.Moment{Wall: time.Now().UnixNano(), Replicated: v.times.Now}
		for i := range v.times.Expected {
			e := &v.times.Expected[i]
			emit(read(e, now), classNames[e.Class], e.Name)
		}
	}
}

// one reads a metric without labels.
func one[T int | int64 | uint32 | uint64 | float64](read func(*snapshot) T) probe {
	return func(v *snapshot, emit func(float64, ...string)) { emit(float64(read(v))) }
}

// labelled reads a metric with one label: a number for each value of the label.
func labelled[T int | uint64](values []string, read func(*snapshot) []T) probe {
	return func(v *snapshot, emit func(float64, ...string)) {
		for i, n := range read(v) {
			emit(float64(n), values[i])
		}
	}
}

// truth reads a metric without labels that is 0 or 1.
func truth(read func(*snapshot) bool) probe {
	return func(v *snapshot, emit func(float64, ...string)) { emit(zeroOrOne(read(v))) }
}

func zeroOrOne(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// seconds converts a duration in ns.
func seconds[T int64 | time.Duration](ns T) float64 { return time.Duration(ns).Seconds() }

// idLabel returns the id of a server as a label.
func idLabel(id uint64) string { return strconv.FormatUint(id, 10) }

// recorded returns the number of audit records, as far as the server has applied the log.
func (v *snapshot) recorded() uint64 {
	trail, _ := v.of.Node.Trail()
	return trail.Numbered
}

// stalled returns for how long an operation has been under way that has to do with the disk,
// or with something else.
func stalled(v *snapshot, disk bool) float64 {
	if stall := v.of.Node.Stall(); stall.Disk == disk {
		return stall.Took.Seconds()
	}
	return 0
}

func guardedMessages(v *snapshot) []uint64 {
	l := &v.home
	return []uint64{l.All.Messages, l.All.Others, l.Watch.Messages, l.Messages - l.All.Messages - l.All.Others - l.Watch.Messages}
}

func unacknowledged(v *snapshot, emit func(float64, ...string)) {
	for _, l := range v.home.Links {
		emit(float64(l.Unacked), idLabel(l.Server))
	}
}

// ofClocks reads the estimates of the clocks of other servers. The drift takes longer to
// become known.
func ofClocks(drift bool, read func(*clocks.Estimate) float64) probe {
	return func(v *snapshot, emit func(float64, ...string)) {
		for i := range v.clocks {
			if e := &v.clocks[i]; !drift || e.Over > 0 {
				emit(read(e), idLabel(e.Server))
			}
		}
	}
}

// classNames are the classes of names in labels.
var classNames = []string{registry.Lock: "lock", registry.Election: "election"}

func times(read func(*snapshot) *histogram.Durations) timeProbe {
	return func(v *snapshot, emit func(*histogram.Durations, ...string)) { emit(read(v)) }
}

func timesByClass(read func(*snapshot, registry.Class) *histogram.Durations) timeProbe {
	return func(v *snapshot, emit func(*histogram.Durations, ...string)) {
		for class, name := range classNames {
			emit(read(v, registry.Class(class)), name)
		}
	}
}

func ofPeers(read func(transport.PeerState) float64) probe {
	return func(v *snapshot, emit func(float64, ...string)) {
		for _, p := range v.others {
			emit(read(p), idLabel(p.ID))
		}
	}
}

func lags(v *snapshot, emit func(float64, ...string)) {
	for _, l := range v.times.Lags {
		emit(float64(l.Entries), idLabel(l.Server))
	}
}

func buildInfo(v *snapshot, emit func(float64, ...string)) {
	emit(1, v.of.Version, runtime.Version())
}

// ofDisk reads figures of the data directory, if known.
func ofDisk(read func(*room) int64) probe {
	return func(v *snapshot, emit func(float64, ...string)) {
		if v.disk != nil {
			emit(float64(read(v.disk)))
		}
	}
}

// ofFileSystem reads figures of the file system. None is 0 bytes: 0 means unknown.
func ofFileSystem(read func(*room) int64) probe {
	return func(v *snapshot, emit func(float64, ...string)) {
		if v.disk != nil && v.disk.size > 0 {
			emit(float64(read(v.disk)))
		}
	}
}

func expiries(v *snapshot, emit func(float64, ...string)) {
	for use, when := range v.of.Certificates() {
		emit(float64(when.Unix()), use)
	}
}

func tokenExpiries(v *snapshot, emit func(float64, ...string)) {
	for _, e := range v.of.Node.Rules().Endings(access.MaxEndings) {
		emit(time.Duration(e.At).Seconds(), e.Principal)
	}
}

func lastBackup(v *snapshot, emit func(float64, ...string)) {
	if at := max(v.LastBackup, v.counts.LastBackup.Load()); at > 0 {
		emit(time.Duration(at).Seconds())
	}
}
