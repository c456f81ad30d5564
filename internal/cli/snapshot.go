package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave"
	"github.com/conclave-io/conclave/internal/outfile"
	"github.com/conclave-io/conclave/service/access"
	"github.com/conclave-io/conclave/service/backup"
)

func newSnapshot(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Save the state of the cluster to a file, look at one, begin a new cluster from one",
		Long: `Snapshot makes backups. What they are for is the loss of so many servers that no
majority has its disk; a server that lost its disk alone comes back by itself.

A cluster that begins from a file grants fences above all that the old one gave. It
has none of its sessions, and so nobody holds anything.`,
		Example: `  conclave snapshot save /var/backups/conclave
  conclave snapshot inspect /var/backups/conclave
  conclave snapshot restore /var/backups/conclave --data /var/lib/conclave`,
		Args: subcommandOnly,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSnapshotSave(a), newSnapshotInspect(a), newSnapshotRestore(a))
	return cmd
}

func subcommandOnly(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unknown command %q for %s; see `%s --help`", args[0], cmd.CommandPath(), cmd.CommandPath())
	}
	return nil
}

func newSnapshotSave(a *app) *cobra.Command {
	var stale bool
	cmd := &cobra.Command{
		Use:   "save FILE",
		Short: "Save the state of the cluster to a file",
		Long: `Save asks the cluster for its state, with all that was acknowledged before, checks
what it got, and puts it into FILE: whole, or not at all. A file that was there is
replaced; a link stays, and the file to which it points is written. What is neither
is refused, such as a device.`,
		Example: `  conclave snapshot save /var/backups/conclave
  conclave snapshot save conclave.backup --stale --servers 10.0.0.2:7400`,
		Args: oneArgument("a file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := outfile.Place(args[0]); err != nil {
				return err
			}
			return a.ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				return a.saveSnapshot(ctx, client, args[0], stale)
			})
		},
	}
	cmd.Flags().BoolVar(&stale, "stale", false, "take what one server has, which may lag behind; needs no leader")
	a.addJSON(cmd)
	return cmd
}

func (a *app) saveSnapshot(ctx context.Context, client *conclave.Client, path string, stale bool) error {
	var options []conclave.BackupOption
	if stale {
		options = append(options, conclave.Stale())
	}
	var file bytes.Buffer
	if err := client.Backup(ctx, &file, options...); err != nil {
		return err
	}
	b, err := backup.Decode(file.Bytes())
	if err != nil {
		return fmt.Errorf("what the server sent: %w", err)
	}
	if err := backup.Write(path, file.Bytes()); err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	return a.printBackup(path, b)
}

func newSnapshotInspect(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Check a saved state, and say what is in it",
		Example: `  conclave snapshot inspect /var/backups/conclave
  conclave snapshot inspect conclave.backup --json`,
		Args: oneArgument("a file"),
		RunE: func(_ *cobra.Command, args []string) error {
			b, err := backup.Read(args[0])
			if err != nil {
				return err
			}
			return a.printBackup(args[0], b)
		},
	}
	a.addJSON(cmd)
	return cmd
}

func newSnapshotRestore(a *app) *cobra.Command {
	var dir, above string
	var withoutAccess bool
	cmd := &cobra.Command{
		Use:   "restore FILE --data DIR",
		Short: "Make the data directory of a server that founds a new cluster from a saved state",
		Long: `Restore makes DIR, which must be empty or new, the data directory of a server that
begins a new cluster with what is in FILE. Run it for every server of that cluster,
with the same FILE, before the first of them starts; then start them as any new
cluster, with the same --peers and --cluster-name on all.

The old cluster must be stopped for good. Start the new one no sooner than the
longest TTL of its sessions after that, so that all programs know that they have
lost what they held.

Fences begin above all that the old cluster gave. If a cluster was begun from this
FILE before, give --above with a fence that it gave, the same on all servers.

The rules of access are those of FILE: an administrator who was removed later is one
again. --without-access leaves out rules, tokens and quotas, on all servers or on none.`,
		Example: `  conclave snapshot restore /var/backups/conclave --data /var/lib/conclave
  conclave snapshot restore conclave.backup --data /var/lib/conclave --above 3298534883332`,
		Args: oneArgument("a file"),
		RunE: func(_ *cobra.Command, args []string) error {
			if dir == "" {
				return errors.New("--data: name the data directory to make")
			}
			least, err := strconv.ParseUint(above, 10, 64)
			if err != nil {
				return fmt.Errorf("--above: %q is not a fence", above)
			}
			return a.restoreSnapshot(args[0], dir, least, withoutAccess)
		},
	}
	cmd.Flags().StringVar(&dir, "data", "", "data directory to make, empty or new")
	cmd.Flags().StringVar(&above, "above", "0", "a fence that was given; those of the new cluster are larger")
	cmd.Flags().BoolVar(&withoutAccess, "without-access", false, "leave out the rules of access, the tokens and the quotas")
	a.addJSON(cmd)
	return cmd
}

func (a *app) restoreSnapshot(path, dir string, above uint64, withoutAccess bool) error {
	b, err := backup.Restore(path, dir, above, withoutAccess)
	if err != nil {
		return err
	}
	rules := b.Registry.Rules()
	view := restoredView{
		Data: dir, Epoch: b.Registry.Epoch(), FencesAbove: b.Registry.Counts().Fence,
		Access: rules.Mode().String(), Administrators: append([]string{}, rules.Administrators()...),
	}
	return a.print(view, func(w io.Writer) error {
		if _, err := fmt.Fprintf(w, "%s is ready; fences will be above %d (epoch %d)\n", dir, view.FencesAbove, view.Epoch); err != nil || rules.Mode() != access.Closed {
			return err
		}
		_, err := fmt.Fprintf(w, "the rules of access are those of %s; they may be changed by: %s\n",
			time.Unix(0, b.Time).UTC().Format(time.RFC3339), strings.Join(view.Administrators, ", "))
		return err
	})
}

type restoredView struct {
	Data        string `json:"data"`
	Epoch       uint64 `json:"epoch"`
	FencesAbove uint64 `json:"fences_above,string"`
	// Access is the mode of the rules, and Administrators who may change them.
	Access         string   `json:"access"`
	Administrators []string `json:"administrators"`
}

type backupView struct {
	File         string    `json:"file"`
	SizeBytes    int       `json:"size_bytes"`
	SHA256       string    `json:"sha256"`
	Cluster      string    `json:"cluster"`
	ClusterName  string    `json:"cluster_name"`
	Server       uint64    `json:"server"`
	Version      string    `json:"version"`
	SavedAt      time.Time `json:"saved_at"`
	Stale        bool      `json:"stale"`
	Index        uint64    `json:"index,string"`
	Term         uint64    `json:"term,string"`
	Epoch        uint64    `json:"epoch"`
	Fence        uint64    `json:"fence,string"`
	Sessions     int       `json:"sessions"`
	LongestTTLMS int64     `json:"longest_ttl_ms"`
	Locks        int       `json:"locks"`
	Elections    int       `json:"elections"`
	Waiters      int       `json:"waiters"`
	Members      []uint64  `json:"members"`
}

func backupJSON(path string, b *backup.Backup) backupView {
	counts := b.Registry.Counts()
	v := backupView{
		File: path, SizeBytes: b.Size, SHA256: fmt.Sprintf("%x", b.Sum),
		Cluster: fmt.Sprintf("%016x", b.Cluster), ClusterName: b.Name, Server: b.Server, Version: b.Version,
		SavedAt: time.Unix(0, b.Time).UTC(), Stale: b.Stale, Index: b.Index, Term: b.Term,
		Epoch: b.Registry.Epoch(), Fence: counts.Fence,
		Sessions: counts.Sessions, LongestTTLMS: b.LongestTTL().Milliseconds(),
		Locks: counts.Locks, Elections: counts.Elections, Waiters: counts.Waiters, Members: b.Servers(),
	}
	return v
}

func (a *app) printBackup(path string, b *backup.Backup) error {
	v := backupJSON(path, b)
	return a.print(v, func(w io.Writer) error {
		linearizable := "linearizable"
		if v.Stale {
			linearizable = "stale: it may lack what was newest"
		}
		fmt.Fprintf(w, "%s: %d bytes, checksum right; the SHA-256 of the file is %s\n", shown(path), v.SizeBytes, v.SHA256)
		fmt.Fprintf(w, "cluster %s (%s), saved by server %d (%s) at %s, %s\n",
			v.Cluster, shown(v.ClusterName), v.Server, shown(v.Version), v.SavedAt.Format(time.RFC3339), linearizable)
		fmt.Fprintf(w, "log up to entry %d in term %d; servers on record: %v\n", v.Index, v.Term, v.Members)
		fmt.Fprintf(w, "newest fence %d, epoch %d\n", v.Fence, v.Epoch)
		_, err := fmt.Fprintf(w, "sessions %d, the longest TTL %v; locks held %d, elections led %d, waiters %d\n",
			v.Sessions, time.Duration(v.LongestTTLMS)*time.Millisecond, v.Locks, v.Elections, v.Waiters)
		return err
	})
}
