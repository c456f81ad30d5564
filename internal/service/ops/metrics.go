package ops

import "slices"

// Metrics are all of them but those of the Go runtime (go_*) and of the process
// (process_*), in the order of docs/metrics.md.
var Metrics = slices.Concat(cluster, clients, names, servers, disks, algorithms, clocks, security)

// cluster is about the agreement of the servers.
var cluster = []Metric{
	{Name: "conclave_leader", Type: Gauge, Unit: Number, Panel: "Cluster/Leader", Help: "Id of the leader that this server knows, or 0."},
	{Name: "conclave_is_leader", Type: Gauge, Unit: One, Panel: "Cluster/Who leads", Help: "1 if this server leads."},
	{Name: "conclave_leader_changes_total", Type: Counter, Unit: Count, Panel: "Cluster/Changes of the leader", Help: "How often the leader that this server knows changed, including changes to and from no leader."},
	{Name: "conclave_term", Type: Gauge, Unit: Number, Panel: "Cluster/Term", Help: "Term of the agreement."},
	{Name: "conclave_commit_index", Type: Gauge, Unit: Number, Panel: "Cluster/Log", Help: "Index of the newest log entry known to be committed.", Expr: rateOf("conclave_commit_index", "deriv")},
	{Name: "conclave_applied_index", Type: Gauge, Unit: Number, Panel: "Cluster/Log", Help: "Index of the newest log entry that this server has applied.", Expr: rateOf("conclave_applied_index", "deriv")},
	{Name: "conclave_peers_connected", Type: Gauge, Unit: Count, Panel: "Cluster/Connections between servers", Help: "Other servers that this server has a connection to."},
	{Name: "conclave_peer_up", Type: Gauge, Labels: []string{"peer"}, Unit: One, Panel: "Cluster/Connections between servers", Help: "1 if messages from this server reach another one.", Absent: alone},
	{Name: "conclave_peer_lag_entries", Type: Gauge, Labels: []string{"peer"}, Unit: Count, Panel: "Cluster/Lag of followers", Help: "Log entries that another server does not have on its disk, as the leader knows.", Absent: "at servers that do not lead, and in a cluster of one"},
	{Name: "conclave_peer_messages_dropped_total", Type: Counter, Labels: []string{"peer"}, Unit: Count, Panel: "Cluster/Dropped messages", Help: "Messages of the agreement for another server that were dropped, because it is unreachable or reads too slowly. They are sent again.", Absent: alone},
	{Name: "conclave_peer_copies_refused_total", Type: Counter, Labels: []string{"peer"}, Unit: Count, Panel: "Cluster/Copies of servers refused", Help: "Connections that this server refused because they came from a second process that runs with the data of another server.", Absent: alone},
	{Name: "conclave_commit_seconds", Type: Histogram, Unit: Seconds, Panel: "Cluster/Time to commit", Help: "Time from the proposal of a log entry to its application by the leader." + leaders},
	{Name: "conclave_pauses_forgiven_seconds_total", Type: Counter, Unit: Seconds, Panel: "Cluster/Pauses of the leader", Help: "Total length of the pauses of this server as leader that were longer than an election timeout. It moved the deadlines of sessions by the same time."},
}

// clients is about requests and the programs that send them.
var clients = []Metric{
	{Name: "conclave_requests_total", Type: Counter, Unit: Count, Panel: "Clients/Requests and replies", Help: "Requests of clients that reached the node."},
	{Name: "conclave_replies_total", Type: Counter, Unit: Count, Panel: "Clients/Requests and replies", Help: "Replies that the node gave."},
	{Name: "conclave_exhausted_total", Type: Counter, Unit: Count, Panel: "Clients/Refused requests", Help: "Replies EXHAUSTED: a bounded queue was full."},
	{Name: "conclave_responses_total", Type: Counter, Labels: []string{"op", "code"}, Unit: Count, Panel: "Clients/First replies", Help: "First replies to requests on streams, by operation and code.", Absent: "until there was a reply"},
	{Name: "conclave_quota_refusals_total", Type: Counter, Labels: []string{"kind"}, Unit: Count, Panel: "Clients/Refused requests", Help: "Requests that a quota refused, by the kind of quota." + leaders},
	{Name: "conclave_rate_refusals_total", Type: Counter, Unit: Count, Panel: "Clients/Refused requests", Help: "Requests that this server refused because their principal sends more per second than its quota allows."},
	{Name: "conclave_request_seconds", Type: Histogram, Labels: []string{"op"}, Unit: Seconds, Panel: "Clients/Time to the first reply", Help: "Time from the arrival of a request on a stream to its first reply, by operation. QUEUED is a reply."},
	{Name: "conclave_call_seconds", Type: Histogram, Labels: []string{"method"}, Unit: Seconds, Panel: "Clients/Time of single calls", Help: "Duration of single calls by method, including the time that they waited in queues.", Absent: "until there was a call"},
	{Name: "conclave_streams", Type: Gauge, Unit: Count, Panel: "Clients/Attached programs", Help: "Programs attached to this server."},
	{Name: "conclave_watches", Type: Gauge, Unit: Count, Panel: "Clients/Attached programs", Help: "Elections and prefixes that are watched through this server."},
	{Name: "conclave_relayed_streams", Type: Gauge, Unit: Count, Panel: "Clients/Attached programs", Help: "Programs that cannot reach the leader, whose streams this server relays to it."},
	{Name: "conclave_pending_requests", Type: Gauge, Unit: Count, Panel: "Clients/Requests that wait for the log", Help: "Requests that wait for a log entry. Only the leader has any."},
}

const unruled = "without rules (conclave expect)"

// names is about sessions, locks and elections.
var names = []Metric{
	{Name: "conclave_sessions", Type: Gauge, Unit: Count, Panel: "Locks and elections/Sessions", Help: "Live sessions."},
	{Name: "conclave_sessions_opened_total", Type: Counter, Unit: Count, Panel: "Locks and elections/Sessions that began and ended", Help: "Sessions that were opened." + leaders},
	{Name: "conclave_sessions_closed_total", Type: Counter, Labels: []string{"how"}, Unit: Count, Panel: "Locks and elections/Sessions that began and ended", Help: "Sessions that were closed by their programs (closed) or ended by somebody else (ended)." + leaders},
	{Name: "conclave_sessions_expired_total", Type: Counter, Unit: Count, Panel: "Locks and elections/Sessions that began and ended", Help: "Sessions that expired because they were not renewed." + leaders},
	{Name: "conclave_locks", Type: Gauge, Unit: Count, Panel: "Locks and elections/Held names", Help: "Locks that are held."},
	{Name: "conclave_elections", Type: Gauge, Unit: Count, Panel: "Locks and elections/Held names", Help: "Elections that somebody leads."},
	{Name: "conclave_waiters", Type: Gauge, Unit: Count, Panel: "Locks and elections/Waiters", Help: "Requests that wait in queues."},
	{Name: "conclave_grants_total", Type: Counter, Labels: []string{"class"}, Unit: Count, Panel: "Locks and elections/Grants", Help: "Locks and leaderships that were granted." + leaders},
	{Name: "conclave_holds_ended_total", Type: Counter, Labels: []string{"how"}, Unit: Count, Panel: "Locks and elections/Holds that ended", Help: "Holds that their holders released, or gave up by closing the session." + leaders},
	{Name: "conclave_holds_lost_total", Type: Counter, Labels: []string{"how"}, Unit: Count, Panel: "Locks and elections/Holds that ended", Help: "Holds that ended without their holders: the session expired, or the hold was dropped after a revocation." + leaders},
	{Name: "conclave_revocations_total", Type: Counter, Labels: []string{"by"}, Unit: Count, Panel: "Locks and elections/Revocations", Help: "Holders that were asked to leave: by an operator, by a candidate with more patience, for a transfer, because the session is ended, or because the guard of the name changes." + leaders},
	{Name: "conclave_wait_seconds", Type: Histogram, Labels: []string{"class"}, Unit: Seconds, Panel: "Locks and elections/Time in queues", Help: "Time from the queue to the grant, of requests that had to wait." + leaders},
	{Name: "conclave_hold_seconds", Type: Histogram, Labels: []string{"class"}, Unit: Seconds, Panel: "Locks and elections/Time of holds", Help: "Time from the grant to the end of a hold." + leaders},
	{Name: "conclave_expect_period_seconds", Type: Gauge, Labels: []string{"class", "name"}, Unit: Seconds, Panel: "Locks and elections/Periods of expected names", Help: "The longest time without a holder that the rule of a name allows.", Absent: unruled},
	{Name: "conclave_expect_idle_seconds", Type: Gauge, Labels: []string{"class", "name"}, Unit: Seconds, Panel: "Locks and elections/Time without a holder", Help: "For how long nobody has held a name with a rule, or has not since the rule was set, as the clocks of this server tell; 0 while it is held.", Absent: unruled},
	{Name: "conclave_expect_overdue", Type: Gauge, Labels: []string{"class", "name"}, Unit: One, Panel: "Locks and elections/Overdue names", Help: "1 if nobody has held a name with a rule for longer than its period, as far as this server has applied the log.", Absent: unruled},
	{Name: "conclave_state_bytes", Type: Gauge, Unit: Bytes, Panel: "Locks and elections/Size of the state", Help: "Estimated size of the replicated state."},
	{Name: "conclave_state_limit_bytes", Type: Gauge, Unit: Bytes, Panel: "Locks and elections/Size of the state", Help: "Setting state-limit: from this size on this server, as the leader, refuses what makes the state larger."},
}

// servers is about what a server is and whether it works.
var servers = []Metric{
	{Name: "conclave_build_info", Type: Gauge, Labels: []string{"version", "go_version"}, Unit: One, Panel: "Servers/Versions", Help: "1, with the release of the server and of Go."},
	{Name: "conclave_ready", Type: Gauge, Unit: One, Panel: "Servers/Ready", Help: "1 if this server can serve calls: it knows a leader, has a state, and nothing stalls."},
	{Name: "conclave_level", Type: Gauge, Unit: Number, Panel: "Servers/Level", Help: "Level of the formats of the cluster, or 0 if this server does not know it yet."},
	{Name: "conclave_level_max", Type: Gauge, Unit: Number, Panel: "Servers/Level", Help: "Newest level that this server can read and write."},
	{Name: "conclave_disk_stalled_seconds", Type: Gauge, Unit: Seconds, Panel: "Servers/Stalls", Help: "How long a write to the data directory has been under way that does not end, or 0."},
	{Name: "conclave_apply_stalled_seconds", Type: Gauge, Unit: Seconds, Panel: "Servers/Stalls", Help: "How long log entries have waited to be applied although the disk of this server works, or 0."},
}

// disks is about the data directory.
var disks = []Metric{
	{Name: "conclave_fsyncs_total", Type: Counter, Unit: Count, Panel: "Disk/Writes", Help: "Fsyncs of the log. Requests per fsync shows how many share one."},
	{Name: "conclave_snapshots_total", Type: Counter, Unit: Count, Panel: "Disk/Snapshots", Help: "Snapshots that this server made."},
	{Name: "conclave_fsync_seconds", Type: Histogram, Unit: Seconds, Panel: "Disk/Time of writes", Help: "Duration of the writes of conclave_fsyncs_total."},
	{Name: "conclave_snapshot_seconds", Type: Histogram, Unit: Seconds, Panel: "Disk/Time of snapshots", Help: "Duration of the writes of snapshot files."},
	{Name: "conclave_log_bytes", Type: Gauge, Unit: Bytes, Panel: "Disk/Data directory", Help: "Size of the log in the data directory.", Absent: withoutDisk},
	{Name: "conclave_snapshot_bytes", Type: Gauge, Unit: Bytes, Panel: "Disk/Data directory", Help: "Size of the snapshots in the data directory.", Absent: withoutDisk},
	{Name: "conclave_disk_free_bytes", Type: Gauge, Unit: Bytes, Panel: "Disk/File system", Help: "Free bytes of the file system of the data directory, for a process without privileges.", Absent: withoutDisk + ", and on other systems than Linux"},
	{Name: "conclave_disk_size_bytes", Type: Gauge, Unit: Bytes, Panel: "Disk/File system", Help: "Size of the file system of the data directory.", Absent: withoutDisk + ", and on other systems than Linux"},
	{Name: "conclave_backup_last_timestamp_seconds", Type: Gauge, Unit: Timestamp, Panel: "Disk/Age of the last backup", Expr: `time() - conclave_backup_last_timestamp_seconds{job="$job"}`, Help: "When a server sent the end of the last backup, as the cluster has on record. Also one of those that are not on record (with --stale, or below level 5), if this server sent it since its start.", Absent: "until there is one"},
}

// algorithms is about locks that algorithms guard.
var algorithms = []Metric{
	{Name: "conclave_view_epoch", Type: Gauge, Unit: Number, Panel: "Algorithms/Epoch", Help: "Newest epoch that this server is in or has seen, as a guard of locks by algorithms."},
	{Name: "conclave_view_members", Type: Gauge, Unit: Count, Panel: "Algorithms/Members of the view", Help: "Servers that guard locks by algorithms, as this server knows them."},
	{Name: "conclave_view_changes_total", Type: Counter, Labels: []string{"reason"}, Unit: Count, Panel: "Algorithms/Changes of the epoch", Help: "Epochs that began at this server, by what changed. An epoch with two reasons counts twice."},
	{Name: "conclave_view_pause_seconds", Type: Gauge, Unit: Seconds, Panel: "Algorithms/Pause at a change of the epoch", Help: "How long the locks that algorithms guard paused at the last change of the epoch, as this server saw it."},
	{Name: "conclave_seat_remaining_seconds", Type: Gauge, Unit: Seconds, Panel: "Algorithms/Leases of seats", Help: "Remaining lease of this server's seat, or 0."},
	{Name: "conclave_home_sessions", Type: Gauge, Unit: Count, Panel: "Algorithms/Sessions at homes", Help: "Sessions that this server keeps for locks that algorithms guard."},
	{Name: "conclave_live_names", Type: Gauge, Labels: []string{"state"}, Unit: Count, Panel: "Algorithms/Names", Help: "Locks that an algorithm guards and that have a machine at this server: busy if its clients hold or wait for them, otherwise idle."},
	{Name: "conclave_live_entries_total", Type: Counter, Unit: Count, Panel: "Algorithms/Grants", Help: "Grants of locks that algorithms guard, to clients of this server."},
	{Name: "conclave_live_wait_seconds", Type: Histogram, Unit: Seconds, Panel: "Algorithms/Time to the grant", Help: "Time from the request to the algorithm until the grant, of the grants of conclave_live_entries_total."},
	{Name: "conclave_live_messages_total", Type: Counter, Labels: []string{"class"}, Unit: Count, Panel: "Algorithms/Messages", Help: "Messages that this server sent to others for locks that algorithms guard: of the protocol (those that the costs of an algorithm count), others of the algorithm, of the watch stack, and of the view."},
	{Name: "conclave_link_unacked", Type: Gauge, Labels: []string{"peer"}, Unit: Count, Panel: "Algorithms/Unacknowledged messages", Help: "Messages for another server that it has not acknowledged.", Absent: "while the server is in no view with others"},
	{Name: "conclave_shunned_total", Type: Counter, Labels: []string{"why"}, Unit: Count, Panel: "Algorithms/Seats given up", Help: "How often this server, as the leader, stopped renewing the seat of a server."},
	{Name: "conclave_watch_doubted", Type: Gauge, Unit: Count, Panel: "Algorithms/Suspected servers", Help: "Members of the view that the failure detector of this server suspects, or has declared failed."},
	{Name: "conclave_watch_suspicions_total", Type: Counter, Unit: Count, Panel: "Algorithms/Verdicts of the failure detector", Help: "How often the failure detector of this server suspected a member of the view."},
	{Name: "conclave_watch_failures_total", Type: Counter, Unit: Count, Panel: "Algorithms/Verdicts of the failure detector", Help: "How often the failure detector of this server declared a member of the view failed."},
	{Name: "conclave_watch_trusts_total", Type: Counter, Unit: Count, Panel: "Algorithms/Verdicts of the failure detector", Help: "How often the failure detector of this server took back a suspicion or a failure."},
	{Name: "conclave_watch_elections_total", Type: Counter, Unit: Count, Panel: "Algorithms/Elections in the view", Help: "Results of elections in the view that this server has heard."},
	{Name: "conclave_watch_messages_total", Type: Counter, Unit: Count, Panel: "Algorithms/Messages of the watch stack", Help: "Messages of failure detector and election that this server sent to others."},
}

// clocks is about the clocks of other servers.
var clocks = []Metric{
	{Name: "conclave_clock_offset_seconds", Type: Gauge, Labels: []string{"peer"}, Unit: Seconds, Panel: "Clocks/Offset of other servers", Help: "How far the wall clock of another server is ahead of that of this server.", Absent: unmeasured},
	{Name: "conclave_clock_error_seconds", Type: Gauge, Labels: []string{"peer"}, Unit: Seconds, Panel: "Clocks/Error of the offset", Help: "Upper bound of the error of conclave_clock_offset_seconds.", Absent: unmeasured},
	{Name: "conclave_clock_drift_ratio", Type: Gauge, Labels: []string{"peer"}, Unit: Ratio, Panel: "Clocks/Drift of other servers", Help: "How much faster the lease clock of another server runs. Leases allow less than 0.1.", Absent: unmeasured},
	{Name: "conclave_clock_drift_error_ratio", Type: Gauge, Labels: []string{"peer"}, Unit: Ratio, Panel: "Clocks/Error of the drift", Help: "Upper bound of the error of conclave_clock_drift_ratio.", Absent: unmeasured},
}

const unmeasured = "until the clock of another server was measured"

// security is about proofs, rules and certificates.
var security = []Metric{
	{Name: "conclave_access_mode", Type: Gauge, Labels: []string{"mode"}, Unit: One, Panel: "Security/Access", Help: "1 for the present mode of this server: closed if the cluster has rules of access, open if everybody may do everything, unset if only callers on this machine may."},
	{Name: "conclave_audit_records_total", Type: Counter, Unit: Count, Panel: "Security/Acts on record", Help: "Acts of administration that the cluster has recorded, including refused ones, as far as this server has applied the log. Repeated refusals count once."},
	{Name: "conclave_audit_lines_total", Type: Counter, Unit: Count, Panel: "Security/Lines of the audit log", Help: "Lines that this server has written to its audit log."},
	{Name: "conclave_audit_write_errors_total", Type: Counter, Unit: Count, Panel: "Security/Errors of the audit log", Help: "Failed attempts of this server to write its audit log."},
	{Name: "conclave_audit_last_timestamp_seconds", Type: Gauge, Unit: Timestamp, Panel: "Security/Newest line of the audit log", Help: "When this server wrote the newest line of its audit log, in seconds since 1970; 0 if it has written none."},
	{Name: "conclave_certificate_reloads_total", Type: Counter, Labels: []string{"result"}, Unit: Count, Panel: "Security/Reloads of certificates", Help: "How often the TLS files were read again, by result. After a failure, the previous certificates stay in use."},
	{Name: "conclave_certificate_expiry_timestamp_seconds", Type: Gauge, Labels: []string{"use"}, Unit: Timestamp, Panel: "Security/Time until certificates expire", Expr: `conclave_certificate_expiry_timestamp_seconds{job="$job"} - time()`, Help: "When the certificate that this server shows to clients, or to its peers (the other servers), expires.", Absent: "without TLS"},
	{Name: "conclave_token_expiry_timestamp_seconds", Type: Gauge, Labels: []string{"principal"}, Unit: Timestamp, Panel: "Security/Time until tokens expire", Expr: `conclave_token_expiry_timestamp_seconds{job="$job"} - time()`, Help: "When the last token of a principal expires, for the 100 principals that lose theirs first. Tokens for less than two weeks do not count.", Absent: "until there is such a token"},
	{Name: "conclave_auth_failures_total", Type: Counter, Labels: []string{"source", "why"}, Unit: Count, Panel: "Security/Failed proofs", Help: "Connections and calls whose certificate or token proves nobody, and why: a certificate is untrusted, expired, or has no name that counts (name); a token is malformed, unknown or expired.", Absent: "until there was one"},
	{Name: "conclave_denied_total", Type: Counter, Labels: []string{"verb"}, Unit: Count, Panel: "Security/Denied calls", Help: "Calls and requests that the rules of access refused, by the verb that their caller lacks.", Absent: "until there was one"},
}

const (
	alone       = "in a cluster of one"
	withoutDisk = "without a data directory"
	// leaders follows what only leaders count, each the entries of its own term.
	leaders = " Counted by the leader: add the servers up."
)
