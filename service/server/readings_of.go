package server

import (
	"runtime"
	"time"

	"github.com/conclave-io/conclave/internal/histogram"
	"github.com/conclave-io/conclave/service/registry"
	"github.com/conclave-io/conclave/service/transport"
)

// classNames are the classes of names in labels.
var classNames = []string{registry.Lock: "lock", registry.Election: "election"}

func byClass(read func(*snapshot, registry.Class) uint64) probe {
	return func(v *snapshot, emit func(float64, ...string)) {
		for class, name := range classNames {
			emit(float64(read(v, registry.Class(class))), name)
		}
	}
}

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

func sessionsClosed(v *snapshot, emit func(float64, ...string)) {
	emit(float64(v.times.Over[registry.Closed]), "closed")
	emit(float64(v.times.Over[registry.Dropped]), "ended")
}

func holdsEnded(v *snapshot, emit func(float64, ...string)) {
	emit(float64(v.times.Ended[registry.Released]), "released")
	emit(float64(v.times.Ended[registry.Closed]), "closed")
}

func holdsLost(v *snapshot, emit func(float64, ...string)) {
	emit(float64(v.times.Ended[registry.Expired]), "expired")
	emit(float64(v.times.Ended[registry.Dropped]), "dropped")
}

func quotaRefusals(v *snapshot, emit func(float64, ...string)) {
	for i, kind := range registry.QuotaKinds {
		emit(float64(v.times.Quotas[i]), kind)
	}
}

func revocations(v *snapshot, emit func(float64, ...string)) {
	for i, by := range registry.Motives {
		emit(float64(v.times.Revoked[i]), by)
	}
}

func ofPeers(read func(transport.Standing) float64) probe {
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
	emit(1, v.server.cfg.Version, runtime.Version())
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
	for _, e := range v.server.secrets.expiries() {
		emit(float64(e.when.Unix()), e.use)
	}
}

func lastBackup(v *snapshot, emit func(float64, ...string)) {
	if at := v.server.metrics.backup.Load(); at > 0 {
		emit(time.Duration(at).Seconds())
	}
}
