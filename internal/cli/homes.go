package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/conclave-io/conclave"
)

// homeView is the state of a server that takes part in locks that algorithms guard.
type homeView struct {
	Epoch      uint64          `json:"epoch"`
	State      string          `json:"state"`
	Remaining  string          `json:"remaining"`
	Paused     string          `json:"paused"`
	Missing    []uint64        `json:"missing,omitempty"`
	Sessions   uint64          `json:"sessions"`
	Names      uint64          `json:"names"`
	Lanes      []laneView      `json:"lanes"`
	Namespaces []namespaceView `json:"namespaces"`
	Watch      *watchingView   `json:"watch,omitempty"`
	Starts     []viewStartView `json:"starts"`
}

// watchingView is the state of a failure detector and an election.
type watchingView struct {
	Stack      string   `json:"stack"`
	Doubted    []uint64 `json:"doubted,omitempty"`
	Elected    uint64   `json:"elected,omitempty"`
	Suspicions uint64   `json:"suspicions"`
	Failures   uint64   `json:"failures"`
	Trusts     uint64   `json:"trusts"`
	Elections  uint64   `json:"elections"`
	Messages   uint64   `json:"messages"`
}

type viewStartView struct {
	Epoch uint64    `json:"epoch"`
	At    time.Time `json:"at"`
	Why   string    `json:"why"`
}

type laneView struct {
	Server         uint64 `json:"server"`
	Up             bool   `json:"up"`
	Unacknowledged uint64 `json:"unacknowledged"`
}

type namespaceView struct {
	Prefix    string `json:"prefix"`
	Algorithm string `json:"algorithm"`
	Names     uint64 `json:"names"`
	Entries   uint64 `json:"entries"`
	Messages  uint64 `json:"messages"`
	Others    uint64 `json:"other_messages"`
	Waited    string `json:"waited"`
}

func homeJSON(h *conclave.Home) *homeView {
	if h == nil {
		return nil
	}
	v := &homeView{
		Epoch: h.Epoch, State: h.State, Remaining: h.Remaining.String(), Paused: h.Paused.String(), Missing: h.Missing,
		Sessions: h.Sessions, Names: h.Names, Lanes: each(h.Lanes, func(l conclave.Lane) laneView { return laneView(l) }),
		Namespaces: each(h.Namespaces, func(n conclave.Namespace) namespaceView {
			return namespaceView{n.Prefix, n.Algorithm, n.Names, n.Entries, n.Messages, n.Others, n.Waited.String()}
		}),
		Starts: each(h.Starts, func(s conclave.ViewStart) viewStartView { return viewStartView(s) }),
	}
	if w := h.Watch; w != nil {
		v.Watch = &watchingView{w.Stack, w.Doubted, w.Elected, w.Suspicions, w.Failures, w.Trusts, w.Elections, w.Messages}
	}
	return v
}

// writeSeats shows the servers that take part, and those that wait to take part.
func writeSeats(w io.Writer, v *conclave.View) error {
	t := newTable(w, "SERVER", "ADDRESS", "SEAT", "LEASE LEFT", "PART", "CLIENTS", "NAMES", "LAST PAUSE", "LANES", "DOUBTS")
	for _, s := range v.Members {
		part, clients, names, paused, lanes, doubts := "no answer", "-", "-", "-", "-", "-"
		if h := s.Home; h != nil {
			part, clients, names, paused, lanes = partOf(h), number(h.Sessions), number(h.Names), h.Paused.Round(10*time.Microsecond).String(), lanesOf(h)
			if h.Watch != nil && len(h.Watch.Doubted) > 0 {
				doubts = strings.Trim(fmt.Sprint(h.Watch.Doubted), "[]")
			}
		}
		t.row(number(s.Server), shown(s.Address), shortID(s.ID), s.Remaining.Round(time.Millisecond).String(), shown(part), clients, names, paused, lanes, doubts)
	}
	for _, s := range v.Others {
		t.row(number(s.Server), shown(s.Address), shortID(s.ID), s.Remaining.Round(time.Millisecond).String(), "waits", "-", "-", "-", "-", "-")
	}
	return t.flush()
}

// partOf describes the state of a member.
func partOf(h *conclave.Home) string {
	switch {
	case h.State == "OPEN" && h.Remaining == 0:
		return "lapsed"
	case h.State == "RESUMING":
		return "waits for " + strings.Trim(fmt.Sprint(h.Missing), "[]")
	}
	return strings.ToLower(h.State)
}

// lanesOf says how many of the connections to other members are up.
func lanesOf(h *conclave.Home) string {
	up := 0
	for _, l := range h.Lanes {
		if l.Up {
			up++
		}
	}
	return fmt.Sprintf("%d of %d", up, len(h.Lanes))
}

// perNamespace adds up the counters of the members for each prefix.
func perNamespace(v *conclave.View) (sums []conclave.Namespace) {
	for _, s := range v.Members {
		if s.Home == nil {
			continue
		}
		for _, n := range s.Home.Namespaces {
			at := slices.IndexFunc(sums, func(sum conclave.Namespace) bool { return sum.Prefix == n.Prefix })
			if at < 0 {
				sums = append(sums, n)
				continue
			}
			sum := &sums[at]
			sum.Names = max(sum.Names, n.Names)
			sum.Entries, sum.Messages, sum.Others = sum.Entries+n.Entries, sum.Messages+n.Messages, sum.Others+n.Others
			sum.Waited += n.Waited
		}
	}
	return sums
}
