package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/api/jsonform"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/cluster/forms"
	"github.com/conclave-io/conclave/internal/cli/ui"
)

// NewWatch returns the command watch.
func NewWatch(a *connect.App) *cobra.Command {
	var of ResourceClass
	cmd := &cobra.Command{
		Use:   "watch [PREFIX]",
		Short: "Print changes of locks, or of elections, as they happen",
		Long: `The command first prints the locks whose names start with PREFIX (default: all). Then it prints a line
for each change: who holds the lock, who was asked to leave, and how many wait. Changes that come faster
than they can be printed are merged. It runs until Ctrl-C, or until its output is closed.

Locks that an algorithm guards are checked once per second. Each new epoch of the servers that guard them
has a line with its reason.

With --json, each line is an object. For a lock it has "at" (when the change was seen), "name", and "held",
as in the output of conclave locks; "held" is absent if nobody holds the lock. For an epoch it has "at",
"epoch" and "why".`,
		Example: `  conclave watch
  conclave watch reports/ --json
  conclave watch --elections`,
		Args: ui.AtMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix := strings.Join(args, "")
			return a.Follow(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				return watchResources(a, ctx, client, of, prefix)
			})
		},
	}
	cmd.Flags().BoolVar(&of.Election, "elections", false, "watch elections instead of locks")
	a.WithJSON(cmd)
	cmd.Flags().Lookup("json").Usage = "print one JSON object per line, for each change"
	return cmd
}

func watchResources(a *connect.App, ctx context.Context, client *conclave.Client, of ResourceClass, prefix string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	changes, err := of.Watch(ctx, client, prefix)
	if err != nil {
		return err
	}
	var seen <-chan look
	if !of.Election {
		seen = looks(ctx, client, prefix)
	}
	return printChanges(a, of, changes, seen)
}

// Watch reports the changes of the locks or elections whose names start with prefix.
func (k ResourceClass) Watch(ctx context.Context, client *conclave.Client, prefix string) (<-chan conclave.Changes, error) {
	if k.Election {
		return client.WatchElections(ctx, prefix)
	}
	return client.Watch(ctx, prefix)
}

// printEvent prints one JSON object, or one line for people.
func printEvent(a *connect.App, value any, text string) error {
	if !a.JSON {
		_, err := fmt.Fprintln(a.Stdout, text)
		return err
	}
	out := json.NewEncoder(a.Stdout)
	out.SetEscapeHTML(false)
	return out.Encode(value)
}

// changeView is a change of a lock or an election.
type changeView struct {
	At   time.Time       `json:"at"`
	Name string          `json:"name"`
	Held *forms.Resource `json:"held,omitempty"`
}

func printChanges(a *connect.App, of ResourceClass, changes <-chan conclave.Changes, seen <-chan look) error {
	agreed, guarded := newNews(), guardedNews{locks: newNews()}
	for {
		var fresh []conclave.Resource
		select {
		case c, more := <-changes:
			if !more {
				return nil
			}
			if c.Reset && agreed.begun {
				a.Say("connection to the server lost; watching through another server")
			}
			fresh = agreed.take(c)
		case l := <-seen:
			if err := printStarts(a, guarded.starts(l)); err != nil {
				return err
			}
			fresh = guarded.take(l)
			if away := NoAnswer(l.silent); away != guarded.said {
				if guarded.said = away; away != "" {
					a.Say("%s", away)
				}
			}
		}
		if err := printResources(a, of, fresh); err != nil {
			return err
		}
	}
}

func printResources(a *connect.App, of ResourceClass, fresh []conclave.Resource) error {
	for _, r := range fresh {
		at := time.Now()
		view := changeView{At: at, Name: r.Name}
		if len(r.Holders) > 0 {
			view.Held = new(forms.ResourceOf(r))
		}
		if err := printEvent(a, view, at.Format(time.TimeOnly)+"  "+of.sentence(r)); err != nil {
			return err
		}
	}
	return nil
}

// news filters the changes that a watch reports. After a reset it compares all resources with those
// known before, so that nothing is printed twice and no end of a hold is missed.
type news struct {
	known map[string]string // the last fingerprint of each resource
	begun bool
	fresh map[string]bool // resources seen since a reset, until all have arrived
}

func newNews() *news { return &news{known: make(map[string]string)} }

// take returns the resources that changed. A resource without holders is free.
func (n *news) take(c conclave.Changes) (changed []conclave.Resource) {
	if c.Reset {
		n.fresh, n.begun = make(map[string]bool), true
	}
	for _, r := range c.Resources {
		if n.fresh != nil {
			n.fresh[r.Name] = true
		}
		if text := fingerprint(&r); n.known[r.Name] != text {
			n.known[r.Name] = text
			changed = append(changed, r)
		}
	}
	gone := c.Gone
	if n.fresh != nil && !c.More {
		for _, name := range slices.Sorted(maps.Keys(n.known)) {
			if !n.fresh[name] {
				gone = append(gone, name)
			}
		}
		n.fresh = nil
	}
	for _, name := range gone {
		if _, known := n.known[name]; known {
			delete(n.known, name)
			changed = append(changed, conclave.Resource{Name: name})
		}
	}
	return changed
}

// fingerprint contains everything that a line shows.
func fingerprint(r *conclave.Resource) string {
	text, err := json.Marshal(forms.ResourceOf(*r))
	if err != nil {
		panic(err) // impossible: all fields can be encoded
	}
	return string(text)
}

// sentence describes the current state of a lock or an election.
func (k ResourceClass) sentence(r conclave.Resource) string {
	var b strings.Builder
	b.WriteString(ui.Shown(r.Name) + ":")
	if len(r.Holders) == 0 {
		return b.String() + k.either(" free", " nobody leads")
	}
	for i, h := range r.Holders {
		k.holder(&b, i, r.Limit, h)
	}
	if r.QueueLength > 0 {
		fmt.Fprintf(&b, "; %d waiting", r.QueueLength)
	}
	return b.String()
}

func (k ResourceClass) holder(w io.Writer, i int, limit uint32, h conclave.Holder) {
	switch {
	case i > 0:
		fmt.Fprint(w, " and")
	case k.Election:
		fmt.Fprint(w, " led")
	case h.Shared:
		fmt.Fprint(w, " shared")
	case limit > 1:
		fmt.Fprintf(w, " held (at most %d)", limit)
	default:
		fmt.Fprint(w, " held")
	}
	fmt.Fprintf(w, " by %s, fence %d", ui.Party(h.Owner, h.Program, h.PID, h.Host), h.Fence)
	if len(h.Value) > 0 {
		fmt.Fprintf(w, ", value %s", ui.Shown(string(h.Value)))
	}
	if h.Revoked {
		fmt.Fprint(w, ", asked to leave")
		if h.Reason != "" {
			fmt.Fprintf(w, " (%s)", ui.Shown(h.Reason))
		}
	}
}

// lookEvery is how often a watch asks for what no stream reports: locks that algorithms guard, and
// epochs.
const lookEvery = time.Second

// look is an answer of the servers that guard locks by algorithms.
type look struct {
	locks  []conclave.Resource // that algorithms guard
	silent []uint64            // servers that did not answer
	starts []admin.ViewStart
}

// looks asks every lookEvery until ctx ends. It skips a time at which no server answers.
func looks(ctx context.Context, client *conclave.Client, prefix string) <-chan look {
	out := make(chan look)
	go func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			if l, ok := lookOnce(ctx, client, prefix); ok {
				select {
				case out <- l:
				case <-ctx.Done():
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

func lookOnce(ctx context.Context, client *conclave.Client, prefix string) (l look, ok bool) {
	v, err := admin.New(client).Homes(ctx)
	if err != nil {
		return look{}, false
	}
	l.starts = startsOf(&v)
	if len(v.Guards) > 0 {
		if l.locks, l.silent, err = client.ListKnown(ctx, prefix); err != nil {
			return look{}, false
		}
	}
	l.locks = slices.DeleteFunc(l.locks, func(r conclave.Resource) bool { return r.Guard == "" })
	return l, true
}

// guardedNews filters what is new from one look to the next. Epochs before the first look are not new.
type guardedNews struct {
	locks *news
	begun bool
	epoch uint64
	said  string // about servers that do not answer
}

// take returns the locks that changed. While a server does not answer, nothing is known to be free.
func (n *guardedNews) take(l look) []conclave.Resource {
	return n.locks.take(conclave.Changes{
		Resources: slices.DeleteFunc(l.locks, func(r conclave.Resource) bool { return len(l.silent) > 0 && len(r.Holders) == 0 }),
		Reset:     len(l.silent) == 0,
	})
}

// starts returns those that were not returned before.
func (n *guardedNews) starts(l look) (fresh []admin.ViewStart) {
	for _, s := range l.starts {
		if s.Epoch > n.epoch {
			n.epoch = s.Epoch
			fresh = append(fresh, s)
		}
	}
	if !n.begun {
		n.begun, fresh = true, nil
	}
	return fresh
}

func printStarts(a *connect.App, starts []admin.ViewStart) error {
	for _, s := range starts {
		if err := printEvent(a, jsonform.ViewStart(s), fmt.Sprintf("%s  epoch %d begins: %s", s.At.Local().Format(time.TimeOnly), s.Epoch, ui.Shown(s.Why))); err != nil {
			return err
		}
	}
	return nil
}
