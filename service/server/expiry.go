package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/conclave-io/conclave/service/api"
)

// expiry is when a certificate of this server expires. Its use is "clients" or "peers".
type expiry struct {
	use  string
	when time.Time
}

// expiries returns the expiry of each certificate in use.
func (s *secrets) expiries() (list []expiry) {
	now := s.now.Load()
	for _, one := range []struct {
		use string
		cfg *tls.Config
	}{{"clients", now.clients}, {"peers", now.peerServer}} {
		if one.cfg != nil {
			list = append(list, expiry{one.use, one.cfg.Certificates[0].Leaf.NotAfter})
		}
	}
	return list
}

// soonest returns when the first certificate expires, in ns since 1970; 0 if there is none.
func (s *secrets) soonest() int64 {
	first := int64(0)
	for _, e := range s.expiries() {
		if at := e.when.UnixNano(); first == 0 || at < first {
			first = at
		}
	}
	return first
}

// askExpiries asks the other servers when their certificates expire.
func (s *Server) askExpiries(ctx context.Context, answer *api.StatusResponse) {
	var asked []*report
	for _, m := range answer.GetMembers() {
		if m.GetId() != s.cfg.ID {
			asked = append(asked, s.ask(m.GetId()))
		}
	}
	s.awaitSome(ctx, asked)
	for _, m := range answer.GetMembers() {
		m.CertificateExpiresUnixNs = s.reports.expiry(m.GetId())
		if m.GetId() == s.cfg.ID {
			m.CertificateExpiresUnixNs = answer.GetCertificateExpiresUnixNs()
		}
	}
}

// expiry returns when the first certificate of a server expires, by its last answer.
func (r *reports) expiry(id uint64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.of[id]; known != nil {
		return known.status.GetCertificateExpiresUnixNs()
	}
	return 0
}

// warnAhead is how long before the expiry of a certificate the log has a warning. From the
// last day on there is one every hour.
var warnAhead = []time.Duration{30 * day, 14 * day, 7 * day, 3 * day, day, 0}

const day = 24 * time.Hour

// warnings are the last warnings about certificates, by use.
type warnings map[string]warning

type warning struct {
	of    time.Time // the expiry that the warning was about
	stage int       // how many of warnAhead had begun
	at    time.Time
}

// due returns the warning about a certificate that is due, or "".
func (w warnings) due(e expiry, now time.Time) string {
	left, stage := e.when.Sub(now), 0
	for _, ahead := range warnAhead {
		if left <= ahead {
			stage++
		}
	}
	last := w[e.use]
	hour := left <= day && now.Sub(last.at) >= time.Hour
	if said := last.of.Equal(e.when) && stage <= last.stage && !hour; stage == 0 || said {
		return ""
	}
	w[e.use] = warning{e.when, stage, now}
	text := fmt.Sprintf("the certificate for %s expires in %v", e.use, left.Round(time.Minute))
	switch {
	case left <= 0:
		text = fmt.Sprintf("the certificate for %s has expired", e.use)
	case left > 2*day:
		text = fmt.Sprintf("the certificate for %s expires in %d days", e.use, int(left/day))
	}
	return text
}

// warnOfExpiry logs which certificates expire soon.
func (s *Server) warnOfExpiry(w warnings, now time.Time) {
	for _, e := range s.secrets.expiries() {
		if text := w.due(e, now); text != "" {
			s.log.Warn(text+"; replace the files: the server reloads them by itself", "expires", e.when.UTC().Format(time.RFC3339))
		}
	}
}
