package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/outfile"
	"github.com/conclave-io/conclave/internal/service/audit"
)

const auditLogHelp = `Each line is an administrative action, or one that was refused: who did what, when, from where
and why. The cluster keeps the newest 3,072 actions and 1,024 refusals. A server that runs with
--audit-log writes all of them to a file; see conclave serve --help.

With --json, each record is an object on a line, as in the file of a server.

With --verify, the command checks files that a server wrote: the hash of each line, and that no
line was removed, added or moved. Name the files of one server in the order in which it wrote
them; - is standard input. With --servers, it also compares them with the records of the cluster. It
reports servers whose first lines are in no file that you name. Nobody can tell whether the last lines
of a file about the server itself, and about grants, were cut off.`

// NewAuditLog returns the command audit-log.
func NewAuditLog(a *connect.App) *cobra.Command {
	c := auditLog{App: a}
	cmd := &cobra.Command{
		Use:         "audit-log [--verify FILE...]",
		Short:       "Print administrative actions, and refused ones",
		Long:        auditLogHelp,
		Annotations: ui.Statuses("0 success", "1 with --verify: a file was changed after a server wrote it"),
		Example: `  conclave audit-log
  conclave audit-log --since 1h --actor cert:alice
  conclave audit-log --follow --json
  conclave audit-log --verify audit.log.1 audit.log
  conclave audit-log --verify audit.log --servers 10.0.0.1:7400`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case c.verify:
				return c.check(cmd, args)
			case len(args) > 0:
				return ui.NoArguments(cmd, args)
			case c.follow:
				return a.Follow(cmd.Context(), c.printNew)
			}
			return a.Ask(cmd.Context(), c.printAll)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&c.follow, "follow", false, "print later records too, until Ctrl-C")
	flags.Var(&c.since, "since", "only records that are not older than this, such as 1h")
	flags.StringVar(&c.query.Actor, "actor", "", "only actions of this `principal`, such as cert:alice")
	flags.StringVar(&c.query.Kind, "kind", "", "only records of this `kind`, such as revoke or access")
	flags.StringVar(&c.query.Prefix, "name", "", "only records about names that start with this `prefix`")
	flags.BoolVar(&c.query.Stale, "stale", false, "ask any server: this works without a leader, but the newest records may be missing")
	flags.BoolVar(&c.verify, "verify", false, "check the files that the arguments name")
	a.WithJSON(cmd)
	flags.Lookup("json").Usage = "print one JSON object per line, for each record"
	for _, other := range []string{"follow", "since", "actor", "kind", "name", "stale"} {
		cmd.MarkFlagsMutuallyExclusive("verify", other)
	}
	return ui.StreamsArguments(cmd)
}

type auditLog struct {
	*connect.App
	query          admin.AuditQuery
	since          ui.Duration
	follow, verify bool
}

func (c *auditLog) asked() admin.AuditQuery {
	if c.since != 0 {
		c.query.Since = time.Now().Add(-time.Duration(c.since))
	}
	return c.query
}

func (c *auditLog) printAll(ctx context.Context, client *conclave.Client) error {
	records, err := admin.New(client).AuditLog(ctx, c.asked())
	for i := range records {
		if err := printEvent(c.App, &records[i], recordLine(&records[i])); err != nil {
			return err
		}
	}
	return err
}

func (c *auditLog) printNew(ctx context.Context, client *conclave.Client) error {
	records, err := admin.New(client).FollowAuditLog(ctx, c.asked())
	if err != nil {
		return err
	}
	for r := range records {
		if err := printEvent(c.App, &r, recordLine(&r)); err != nil {
			return err
		}
	}
	return nil
}

func recordLine(r *admin.AuditRecord) string {
	actor := ui.Shown(r.Actor)
	if r.Actor == "" {
		actor = "anonymous"
		if r.Via == "" {
			actor = "the servers"
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %d  %s  %s", r.Time.UTC().Format("2006-01-02T15:04:05Z"), r.Number, actor, ui.Shown(r.Kind))
	if t := r.Target; t != nil {
		for _, part := range []struct{ what, text string }{{"", t.Name}, {"of ", t.Owner}} {
			if part.text != "" {
				fmt.Fprintf(&b, " %s%s", part.what, ui.Shown(part.text))
			}
		}
		if t.Fence != 0 {
			fmt.Fprintf(&b, " with fence %d", t.Fence)
		}
		if t.Server != 0 {
			fmt.Fprintf(&b, " server %d", t.Server)
		}
	}
	if r.Result != "OK" {
		fmt.Fprintf(&b, ": refused, %s", r.Result)
	}
	if r.Count > 1 {
		fmt.Fprintf(&b, ", %d times", r.Count)
	}
	if r.Reason != "" {
		fmt.Fprintf(&b, ": %s", ui.Shown(r.Reason))
	}
	return b.String()
}

type verifiedView struct {
	Lines    int  `json:"lines"`
	Gaps     int  `json:"gaps"`
	Compared bool `json:"compared"`
	// Partial are the servers whose first lines are not here.
	Partial  []uint64 `json:"partial"`
	Problems []string `json:"problems"`
}

// check checks files. If --servers is given, it compares them with the cluster.
func (c *auditLog) check(cmd *cobra.Command, files []string) error {
	if len(files) == 0 {
		//lint:ignore ST1005 the dots belong to the usage
		return errors.New("FILE: missing; usage: conclave audit-log --verify FILE...")
	}
	v := audit.NewVerifier()
	for _, name := range files {
		if err := readLines(cmd, name, v); err != nil {
			return err
		}
	}
	var cluster []admin.AuditRecord
	given := cmd.Flags().Changed("servers")
	if given {
		err := c.Ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) (err error) {
			cluster, err = admin.New(client).AuditLog(ctx, admin.AuditQuery{})
			return err
		})
		if err != nil {
			return err
		}
	}
	v.Compare(cluster)
	view := verifiedView{v.Lines, v.Gaps, given, append([]uint64{}, v.Partial()...), []string{}}
	for _, p := range v.Problems {
		view.Problems = append(view.Problems, p.String())
	}
	if err := c.Print(view, func(w io.Writer) error { return view.text(w) }); err != nil {
		return err
	}
	switch n := len(view.Problems); {
	case n > 0:
		return ui.Failure(ui.StatusNo, "audit log: lines: %d, problems: %d", v.Lines, n)
	case v.Lines == 0:
		return ui.Failure(ui.StatusNo, "audit log: no line in %s, so there is nothing to check: name the files that servers wrote", strings.Join(files, ", "))
	}
	return nil
}

func (v *verifiedView) text(w io.Writer) error {
	for _, p := range v.Problems {
		fmt.Fprintln(w, p)
	}
	if len(v.Problems) > 0 || v.Lines == 0 {
		return nil
	}
	with := ""
	if v.Compared {
		with = ", and equal to the records of the cluster"
	}
	if v.Compared && len(v.Partial) > 0 {
		with += " where both have them"
	}
	_, err := fmt.Fprintf(w, "%d lines are as servers wrote them%s; servers reported missing records in %d places\n", v.Lines, with, v.Gaps)
	for _, id := range v.Partial {
		_, err = fmt.Fprintf(w, "the first lines of server %d are not in these files: if there are files before them, name those too\n", id)
	}
	return err
}

// readLines checks the lines of a file, or of standard input for outfile.Dash.
func readLines(cmd *cobra.Command, name string, v *audit.Verifier) error {
	in := cmd.InOrStdin()
	if name != outfile.Dash {
		file, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("--verify: %w", err)
		}
		defer file.Close()
		in = file
	}
	lines := bufio.NewReader(in)
	for n := 1; ; n++ {
		text, err := lines.ReadBytes('\n')
		if len(text) > 0 {
			v.Line(fmt.Sprintf("%s:%d", name, n), text)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("--verify: %w", err)
		}
	}
}
