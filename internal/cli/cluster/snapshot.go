package cluster

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
	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/cluster/connect"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/outfile"
	"github.com/conclave-io/conclave/internal/service/access"
	"github.com/conclave-io/conclave/internal/service/backup"
)

// NewSnapshot returns the command snapshot.
func NewSnapshot(a *connect.App) *cobra.Command {
	return ui.Group(&cobra.Command{
		Use:   "snapshot",
		Short: "Back up the state of the cluster, and restore it",
		Long: `A backup is for the loss of so many disks that no majority of the servers has its data. If a single
server loses its disk, no backup is necessary.

A cluster that is restored from a backup grants only fences that are larger than those of the old
cluster. It has no sessions, and therefore no holders.`,
		Example: `  conclave snapshot save /var/backups/conclave
  conclave snapshot inspect /var/backups/conclave
  conclave snapshot restore /var/backups/conclave --data /var/lib/conclave`,
	}, newSnapshotSave(a), newSnapshotInspect(a), newSnapshotRestore(a))
}

func newSnapshotSave(a *connect.App) *cobra.Command {
	var stale bool
	cmd := &cobra.Command{
		Use:   "save FILE",
		Short: "Save the state of the cluster to a file",
		Long: `The state contains every change that the cluster acknowledged before the command. The command checks
the state, and then replaces FILE atomically. If FILE is a symbolic link, it replaces the file to
which the link points. If FILE is -, the state goes to standard output, and the description of it to
standard error.`,
		Example: `  conclave snapshot save /var/backups/conclave
  conclave snapshot save - | gzip > conclave.backup.gz
  conclave snapshot save conclave.backup --json
  conclave snapshot save conclave.backup --stale --servers 10.0.0.2:7400`,
		Args: ui.Takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] != outfile.Dash {
				if _, err := outfile.Place(args[0]); err != nil {
					return err
				}
			}
			return a.Ask(cmd.Context(), func(ctx context.Context, client *conclave.Client) error {
				return saveSnapshot(a, ctx, client, args[0], stale)
			})
		},
	}
	cmd.Flags().BoolVar(&stale, "stale", false, "save the state of one server: this works without a leader, but the newest changes may be missing")
	return ui.StreamsArguments(a.WithJSON(cmd))
}

func saveSnapshot(a *connect.App, ctx context.Context, client *conclave.Client, path string, stale bool) error {
	var options []admin.BackupOption
	if stale {
		options = append(options, admin.Stale())
	}
	var file bytes.Buffer
	if err := admin.New(client).Backup(ctx, &file, options...); err != nil {
		return err
	}
	b, err := backup.Decode(file.Bytes())
	if err != nil {
		return fmt.Errorf("state from the server: %w", err)
	}
	if path == outfile.Dash {
		_, err = a.Stdout.Write(file.Bytes())
		a.Stdout = a.Stderr
	} else {
		err = backup.Write(path, file.Bytes())
	}
	if err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	return printBackup(a, path, b)
}

// readBackup reads a backup file, or standard input for outfile.Dash.
func readBackup(cmd *cobra.Command, path string) (*backup.Backup, error) {
	if path == outfile.Dash {
		return backup.ReadFrom("standard input", cmd.InOrStdin())
	}
	return backup.Read(path)
}

func newSnapshotInspect(a *connect.App) *cobra.Command {
	return ui.StreamsArguments(a.WithJSON(&cobra.Command{
		Use:   "inspect FILE",
		Short: "Check a backup file, and describe its content",
		Long: `The command verifies the checksum, and prints the cluster, the time, the newest fence and counts.
If FILE is -, it reads standard input.`,
		Example: `  conclave snapshot inspect /var/backups/conclave
  conclave snapshot inspect conclave.backup
  conclave snapshot inspect conclave.backup --json`,
		Args: ui.Takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			b, err := readBackup(cmd, args[0])
			if err != nil {
				return err
			}
			return printBackup(a, args[0], b)
		},
	}))
}

func newSnapshotRestore(a *connect.App) *cobra.Command {
	var dir, above string
	var withoutAccess bool
	cmd := &cobra.Command{
		Use:   "restore FILE --data DIR",
		Short: "Create a data directory of a new cluster from a backup file",
		Long: `Follow these steps:
  1. Stop the old cluster for good.
  2. For each server of the new cluster, run this command with the same FILE. DIR must be empty or
     must not exist. If FILE is -, the command reads standard input.
  3. Wait for the longest TTL of the old sessions (conclave snapshot inspect shows it). After that,
     all programs know that they have lost what they held.
  4. Start the servers like a new cluster, all with the same --peers and --cluster-name.

Fences are larger than all fences of the old cluster. If another cluster was already restored from
this FILE, set --above to a fence of that cluster, to the same value on all servers.

The rules of access are those in FILE. An administrator who was removed later is an administrator
again. --without-access leaves out rules, tokens and quotas. Use it on all servers or on none.`,
		Example: `  conclave snapshot restore /var/backups/conclave --data /var/lib/conclave
  conclave snapshot restore conclave.backup --data conclave-data --above 3298534883332
  conclave snapshot restore conclave.backup --data conclave-data --without-access --json`,
		Args: ui.Takes("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir == "" {
				return errors.New("--data: missing; set it to the data directory to create")
			}
			least, err := strconv.ParseUint(above, 10, 64)
			if err != nil {
				return fmt.Errorf("--above: %q: expected a fence, an integer of at least 0", above)
			}
			b, err := readBackup(cmd, args[0])
			if err != nil {
				return err
			}
			return restoreSnapshot(a, b, dir, least, withoutAccess)
		},
	}
	cmd.Flags().StringVar(&dir, "data", "", "data `directory` to create; it must be empty or must not exist")
	cmd.Flags().StringVar(&above, "above", "0", "the new cluster grants only fences larger than this `fence`")
	cmd.Flags().BoolVar(&withoutAccess, "without-access", false, "leave out the rules of access, the tokens and the quotas")
	return ui.StreamsArguments(a.WithJSON(cmd))
}

func restoreSnapshot(a *connect.App, b *backup.Backup, dir string, above uint64, withoutAccess bool) error {
	if err := b.Restore(dir, above, withoutAccess); err != nil {
		return err
	}
	rules := b.Registry.Rules()
	view := restoredView{
		Data: dir, Epoch: b.Registry.Epoch(), FencesAbove: b.Registry.Counts().Fence,
		Access: rules.Mode().String(), Administrators: append([]string{}, rules.Administrators()...),
	}
	return a.Print(view, func(w io.Writer) error {
		if _, err := fmt.Fprintf(w, "%s is ready; fences will be larger than %d (epoch %d)\n", dir, view.FencesAbove, view.Epoch); err != nil || rules.Mode() != access.Closed {
			return err
		}
		_, err := fmt.Fprintf(w, "the rules of access are those of %s; administrators: %s\n",
			time.Unix(0, b.Time).UTC().Format(time.RFC3339), strings.Join(view.Administrators, ", "))
		return err
	})
}

type restoredView struct {
	Data        string `json:"data"`
	Epoch       uint64 `json:"epoch"`
	FencesAbove uint64 `json:"fences_above,string"`
	// Access is the mode of the rules. Administrators may change them.
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

func printBackup(a *connect.App, path string, b *backup.Backup) error {
	v := backupJSON(path, b)
	return a.Print(v, func(w io.Writer) error {
		linearizable := "linearizable"
		if v.Stale {
			linearizable = "stale: the newest changes may be missing"
		}
		fmt.Fprintf(w, "%s: %d bytes, checksum valid; the SHA-256 of the file is %s\n", ui.Shown(path), v.SizeBytes, v.SHA256)
		fmt.Fprintf(w, "cluster %s (%s), saved by server %d (%s) at %s, %s\n",
			v.Cluster, ui.Shown(v.ClusterName), v.Server, ui.Shown(v.Version), v.SavedAt.Format(time.RFC3339), linearizable)
		fmt.Fprintf(w, "log up to entry %d in term %d; servers: %v\n", v.Index, v.Term, v.Members)
		fmt.Fprintf(w, "newest fence %d, epoch %d\n", v.Fence, v.Epoch)
		_, err := fmt.Fprintf(w, "sessions %d, longest TTL %v; locks held %d, elections led %d, waiters %d\n",
			v.Sessions, time.Duration(v.LongestTTLMS)*time.Millisecond, v.Locks, v.Elections, v.Waiters)
		return err
	})
}
