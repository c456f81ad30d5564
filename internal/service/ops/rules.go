package ops

import "time"

const (
	scraped = `up{job=~"conclave.*"}`
	minute  = time.Minute
	day     = 24 * time.Hour
)

// availability is about servers that are down, and a cluster that is about to be.
var availability = []Alert{
	{
		Name: "ServerDown", Severity: page, For: minute, Expr: scraped + " == 0",
		Summary: "Server {{ $labels.instance }} of {{ $labels.job }} does not answer.",
		Fault:   all("up", "1x5 0x20", "1x25", "1x25"), Calm: all("up", "1x25", "1x25", "1x25"), At: 10 * minute,
	},
	{
		Name: "NoLeader", Severity: page, For: 30 * time.Second, Expr: "max by (job) (conclave_leader) == 0",
		Summary: "{{ $labels.job }} has no leader: nothing is granted, renewed or released.",
		Fault:   all("conclave_leader", "1x3 0x20", "0x20", "1x3 0x20"), Calm: all("conclave_leader", "1x20", "0x20", "1x20"), At: 10 * minute,
	},
	{
		Name: "QuorumAtRisk", Severity: page, For: minute,
		Expr:    "count by (job) (conclave_ready == 1) <= floor(count by (job) (" + scraped + ") / 2) + 1 and count by (job) (" + scraped + ") >= 3",
		Summary: "{{ $labels.job }} stops if one more server fails.",
		Fault:   append(all("up", "0x20", "1x20", "1x20"), all("conclave_ready", "0x20", "1x20", "1x20")...),
		Calm:    append(all("up", "1x20", "1x20", "1x20"), all("conclave_ready", "1x20", "1x20", "1x20")...), At: 10 * minute,
	},
	{
		Name: "PeerDown", Severity: warning, For: 5 * minute, Expr: "conclave_peer_up == 0",
		Summary: "Server {{ $labels.instance }} of {{ $labels.job }} cannot reach server {{ $labels.peer }}.",
		Fault:   []Series{is("conclave_peer_up", "a", "1x3 0x30", `peer="2"`)}, Calm: []Series{is("conclave_peer_up", "a", "1x3 0x2 1x30", `peer="2"`)}, At: 20 * minute,
	},
	{
		Name: "LeaderFlaps", Severity: warning, Expr: "max by (job) (increase(conclave_leader_changes_total[15m])) >= 10",
		Summary: "{{ $labels.job }} has changed its leader five times in 15 minutes.",
		Fault:   all("conclave_leader_changes_total", "0+1x30"), Calm: all("conclave_leader_changes_total", "1x10 3x20"), At: 20 * minute,
	},
	{
		Name: "DiskHangs", Severity: page, Expr: "conclave_disk_stalled_seconds > 5",
		Summary: "A write to the disk of server {{ $labels.instance }} of {{ $labels.job }} does not finish.",
		Fault:   all("conclave_disk_stalled_seconds", "0x5 10+60x10"), Calm: all("conclave_disk_stalled_seconds", "0x5 1 0x10"), At: 10 * minute,
	},
}

// slowness is about what works and takes long.
var slowness = []Alert{
	{
		Name: "FsyncSlow", Severity: warning, For: 10 * minute,
		Expr:    "histogram_quantile(0.99, sum by (job, instance, le) (rate(conclave_fsync_seconds_bucket[5m]))) > 0.1",
		Summary: "The disk of server {{ $labels.instance }} of {{ $labels.job }} takes over 100 ms for a write.",
		Fault:   observed("conclave_fsync_seconds", "0.1024", "0.2048", 100), Calm: observed("conclave_fsync_seconds", "0.0008", "0.0016", 100), At: 30 * minute,
	},
	{
		Name: "CommitSlow", Severity: warning, For: 10 * minute,
		Expr:    "histogram_quantile(0.99, sum by (job, le) (rate(conclave_commit_seconds_bucket[5m]))) > 0.5",
		Summary: "The servers of {{ $labels.job }} take over 500 ms to agree on a request.",
		Fault:   observed("conclave_commit_seconds", "0.8192", "1.6384", 100), Calm: observed("conclave_commit_seconds", "0.0032", "0.0064", 100), At: 30 * minute,
	},
	{
		Name: "PeerLags", Severity: warning, For: 10 * minute, Expr: "conclave_peer_lag_entries > 10000",
		Summary: "Server {{ $labels.peer }} of {{ $labels.job }} is over 10,000 entries behind the leader.",
		Fault:   []Series{is("conclave_peer_lag_entries", "a", "20000+500x40", `peer="2"`)}, Calm: []Series{is("conclave_peer_lag_entries", "a", "20000x5 3x40", `peer="2"`)}, At: 20 * minute,
	},
	{
		Name: "WaitsLong", Severity: warning, For: 15 * minute,
		Expr:    "histogram_quantile(0.99, sum by (job, class, le) (rate(conclave_wait_seconds_bucket[15m]))) > 300",
		Summary: "One of a hundred requests for a {{ $labels.class }} of {{ $labels.job }} waits over five minutes.",
		Fault:   observed("conclave_wait_seconds", "419.4304", "838.8608", 5, `class="lock"`), Calm: observed("conclave_wait_seconds", "3.2768", "6.5536", 5, `class="lock"`), At: 60 * minute,
	},
	{
		Name: "PausesForgiven", Severity: warning, Expr: "increase(conclave_pauses_forgiven_seconds_total[1h]) > 0",
		Summary: "Server {{ $labels.instance }} of {{ $labels.job }} was paused while it led.",
		Fault:   all("conclave_pauses_forgiven_seconds_total", "0x10 3x20"), Calm: all("conclave_pauses_forgiven_seconds_total", "3x30"), At: 20 * minute,
	},
}

// capacity is about what is nearly full.
var capacity = []Alert{
	{
		Name: "DiskFilling", Severity: page, For: 10 * minute,
		Expr:    "conclave_disk_free_bytes / conclave_disk_size_bytes < 0.15 or predict_linear(conclave_disk_free_bytes[6h], 24 * 3600) < 0",
		Summary: "The disk of server {{ $labels.instance }} of {{ $labels.job }} is nearly full, or will be within a day.",
		Fault:   append(all("conclave_disk_free_bytes", "50000-50x400"), all("conclave_disk_size_bytes", "100000x400")...),
		Calm:    append(all("conclave_disk_free_bytes", "50000x400"), all("conclave_disk_size_bytes", "100000x400")...), At: 6 * time.Hour,
	},
	{
		Name: "StateLarge", Severity: warning, For: 5 * minute, Expr: "max by (job) (conclave_state_bytes / conclave_state_limit_bytes) > 0.7",
		Summary: "The state of {{ $labels.job }} is over 70 % of its limit.",
		Fault:   append(all("conclave_state_bytes", "80x30"), all("conclave_state_limit_bytes", "100x30")...),
		Calm:    append(all("conclave_state_bytes", "60x30"), all("conclave_state_limit_bytes", "100x30")...), At: 20 * minute,
	},
	{
		Name: "RequestsRefused", Severity: warning, For: 5 * minute,
		Expr:    `sum by (job) (rate(conclave_exhausted_total[5m])) > 0 or sum by (job) (rate(conclave_responses_total{code=~"QUOTA|STATE_LIMIT"}[5m])) > 0`,
		Summary: "{{ $labels.job }} refuses requests: a queue, a quota or the state is full.",
		Fault:   []Series{is("conclave_responses_total", "a", "0+5x30", `code="STATE_LIMIT"`, `op="acquire"`)},
		Calm:    append(all("conclave_exhausted_total", "7x30"), is("conclave_responses_total", "a", "0+5x30", `code="OK"`, `op="acquire"`)), At: 20 * minute,
	},
}

// safety is about holders that lose what they hold, and callers that may not call.
var safety = []Alert{
	{
		Name: "HoldsLost", Severity: warning, Expr: "sum by (job) (increase(conclave_holds_lost_total[15m])) > 10",
		Summary: "Over ten holders of {{ $labels.job }} have lost what they held in 15 minutes.",
		Fault:   []Series{is("conclave_holds_lost_total", "a", "0x5 0+2x30", `how="expired"`)}, Calm: []Series{is("conclave_holds_lost_total", "a", "0x5 3x30", `how="expired"`)}, At: 20 * minute,
	},
	{
		Name: "ExpiriesSpike", Severity: warning,
		Expr: "sum by (job) (increase(conclave_sessions_expired_total[10m])) > 20 and " +
			"sum by (job) (rate(conclave_sessions_expired_total[10m])) > 5 * sum by (job) (rate(conclave_sessions_expired_total[1d]))",
		Summary: "Many more sessions of {{ $labels.job }} expire than on the last day.",
		Fault:   all("conclave_sessions_expired_total", "0+0x300 0+10x20"), Calm: all("conclave_sessions_expired_total", "0+10x320"), At: 315 * minute,
	},
	{
		Name: "ServerCopied", Severity: page, Expr: "sum by (job, peer) (increase(conclave_peer_copies_refused_total[15m])) > 0",
		Summary: "Two processes run with the data of server {{ $labels.peer }} of {{ $labels.job }}.",
		Fault:   []Series{is("conclave_peer_copies_refused_total", "a", "0x5 1x30", `peer="2"`)}, Calm: []Series{is("conclave_peer_copies_refused_total", "a", "1x30", `peer="2"`)}, At: 10 * minute,
	},
	{
		Name: "AccessOpen", Severity: warning, For: 5 * minute, Expr: `max by (job) (conclave_access_mode{mode="open"}) == 1`,
		Summary: "Everybody who reaches {{ $labels.job }} may do everything.",
		Fault:   []Series{is("conclave_access_mode", "a", "1x30", `mode="open"`)},
		Calm:    []Series{is("conclave_access_mode", "a", "0x30", `mode="open"`), is("conclave_access_mode", "a", "1x30", `mode="closed"`)}, At: 20 * minute,
	},
	{
		Name: "AuditFails", Severity: page, Expr: "increase(conclave_audit_write_errors_total[15m]) > 0",
		Summary: "Server {{ $labels.instance }} of {{ $labels.job }} cannot write its audit log.",
		Fault:   all("conclave_audit_write_errors_total", "0x5 0+1x20"), Calm: all("conclave_audit_write_errors_total", "2x25"), At: 15 * minute,
	},
	{
		Name: "LoginFailures", Severity: warning, Expr: "sum by (job, source) (increase(conclave_auth_failures_total[10m])) > 20",
		Summary: "Over 20 calls to {{ $labels.job }} have shown a {{ $labels.source }} that proves nobody, in 10 minutes.",
		Fault:   []Series{is("conclave_auth_failures_total", "a", "0+5x30", `source="token"`)}, Calm: []Series{is("conclave_auth_failures_total", "a", "0+1x30", `source="token"`)}, At: 20 * minute,
	},
	{
		Name: "Denials", Severity: warning, Expr: "sum by (job, verb) (increase(conclave_denied_total[10m])) > 100",
		Summary: "The rules of {{ $labels.job }} have refused over 100 calls that need {{ $labels.verb }}, in 10 minutes.",
		Fault:   []Series{is("conclave_denied_total", "a", "0+20x30", `verb="hold"`)}, Calm: []Series{is("conclave_denied_total", "a", "0+1x30", `verb="hold"`)}, At: 20 * minute,
	},
}

// upkeep is about what somebody should have done.
var upkeep = []Alert{
	{
		Name: "CertificateExpires", Severity: warning, Expr: "conclave_certificate_expiry_timestamp_seconds - time() < 14 * 86400",
		Summary: "The certificate of server {{ $labels.instance }} of {{ $labels.job }} for {{ $labels.use }} expires within 14 days.",
		Fault:   []Series{is("conclave_certificate_expiry_timestamp_seconds", "a", "864000x10", `use="peers"`)}, Calm: []Series{is("conclave_certificate_expiry_timestamp_seconds", "a", "1728000x10", `use="peers"`)}, At: 5 * minute,
	},
	{
		Name: "CertificateExpiresSoon", Severity: page, Expr: "conclave_certificate_expiry_timestamp_seconds - time() < 3 * 86400",
		Summary: "The certificate of server {{ $labels.instance }} of {{ $labels.job }} for {{ $labels.use }} expires within 3 days.",
		Fault:   []Series{is("conclave_certificate_expiry_timestamp_seconds", "a", "86400x10", `use="clients"`)}, Calm: []Series{is("conclave_certificate_expiry_timestamp_seconds", "a", "864000x10", `use="clients"`)}, At: 5 * minute,
	},
	{
		Name: "TokenExpires", Severity: warning, Expr: "min by (job, principal) (conclave_token_expiry_timestamp_seconds) - time() < 7 * 86400",
		Summary: "The last token of {{ $labels.principal }} at {{ $labels.job }} expires within 7 days.",
		Fault:   []Series{is("conclave_token_expiry_timestamp_seconds", "a", "518400x10", `principal="token:nightly"`)}, Calm: []Series{is("conclave_token_expiry_timestamp_seconds", "a", "1728000x10", `principal="token:nightly"`)}, At: 5 * minute,
	},
	{
		Name: "ReloadFailed", Severity: warning, Expr: `increase(conclave_certificate_reloads_total{result="failed"}[1h]) > 0`,
		Summary: "Server {{ $labels.instance }} of {{ $labels.job }} could not use its new certificate files.",
		Fault:   []Series{is("conclave_certificate_reloads_total", "a", "0x5 1x20", `result="failed"`)}, Calm: []Series{is("conclave_certificate_reloads_total", "a", "0+1x20", `result="ok"`)}, At: 15 * minute,
	},
	{
		Name: "NotHeld", Severity: warning, Expr: "min by (job, class, name) (conclave_expect_overdue) == 1",
		Summary: "Nobody has held the {{ $labels.class }} {{ $labels.name }} of {{ $labels.job }} for longer than its rule allows.",
		Fault:   []Series{is("conclave_expect_overdue", "a", "0x5 1x20", `class="lock"`, `name="nightly"`), is("conclave_expect_overdue", "b", "0x5 1x20", `class="lock"`, `name="nightly"`)},
		Calm:    []Series{is("conclave_expect_overdue", "a", "0x20", `class="lock"`, `name="nightly"`), is("conclave_expect_overdue", "b", "1x20", `class="lock"`, `name="nightly"`)}, At: 10 * minute,
	},
	{
		Name: "BackupOld", Severity: warning, Expr: "time() - max by (job) (conclave_backup_last_timestamp_seconds) > 26 * 3600",
		Summary: "The last backup of {{ $labels.job }} is over 26 hours old.",
		Fault:   all("conclave_backup_last_timestamp_seconds", "0x1800"), Calm: all("conclave_backup_last_timestamp_seconds", "0x1800", "7200x1800"), At: 27 * time.Hour,
	},
	{
		Name: "VersionsMixed", Severity: warning, For: day, Expr: "count by (job) (count by (job, version) (conclave_build_info)) > 1",
		Summary: "The servers of {{ $labels.job }} have run different releases for a day.",
		Fault:   []Series{is("conclave_build_info", "a", "1x1600", `version="v0.1.0"`), is("conclave_build_info", "b", "1x1600", `version="v0.2.0"`)},
		Calm:    []Series{is("conclave_build_info", "a", "1x1600", `version="v0.2.0"`), is("conclave_build_info", "b", "1x1600", `version="v0.2.0"`)}, At: day + 20*minute,
	},
	{
		Name: "LevelHeld", Severity: warning, For: day, Expr: "max by (job) (conclave_level) < min by (job) (conclave_level_max)",
		Summary: "{{ $labels.job }} has not raised its level for a day, although all servers could.",
		Fault:   append(all("conclave_level", "3x1600", "3x1600"), all("conclave_level_max", "4x1600", "4x1600")...),
		Calm:    append(all("conclave_level", "3x1600", "3x1600"), all("conclave_level_max", "4x1600", "3x1600")...), At: day + 20*minute,
	},
}
