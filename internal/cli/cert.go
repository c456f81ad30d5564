package cli

import (
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/internal/authority"
)

const certHelp = `Cert makes the certificates that a cluster beyond one machine needs. It is for tests and
small clusters: it keeps no list of what it signed, and revokes nothing. Certificates of
any other authority do as well; docs/operations.md says what they must contain.

DIR is the directory of the authority: its certificate ca.pem, its key ca.key, and what it
signed. Whoever has ca.key can be any server and any client: keep DIR off the servers, and
copy to each machine only ca.pem and the two files that it needs. Keys have the mode 0600.
No file is ever replaced.

Servers read their files again when they change; to renew a certificate, move the old files
away, make new ones, and copy them over those on the server.`

func newCert(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cert",
		Short: "Make certificates for servers and clients",
		Long:  certHelp,
		Example: `  conclave cert authority certs
  conclave cert server certs --id 1 --host 10.0.0.1,db1.example.com
  conclave cert client certs --name alice`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("%s: %q: must be authority, server or client", cmd.CommandPath(), args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, construct := range []func(*app) *cobra.Command{newCertAuthority, newCertServer, newCertClient} {
		sub := construct(a)
		sub.Args = oneArgument("the directory of the authority")
		a.addJSON(sub)
		cmd.AddCommand(sub)
	}
	return cmd
}

const (
	day = 24 * time.Hour
	// maxDays bounds how long a certificate is valid: a year has four digits.
	maxDays = 36500
	// yearOfDays is how long those of servers and clients are valid by default, and
	// decadeOfDays that of an authority.
	yearOfDays, decadeOfDays = 365, 3650
)

// addDays gives a command the flag that says how long its certificate is valid.
func addDays(cmd *cobra.Command, standard int) *int {
	return cmd.Flags().Int("days", standard, "how long the certificate is valid")
}

func newCertAuthority(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "authority DIR",
		Short: "Make a certificate authority in a directory",
		Example: `  conclave cert authority certs
  conclave cert authority certs --name "Conclave test" --days 30`,
	}
	name := cmd.Flags().String("name", "Conclave", "name of the authority")
	days := addDays(cmd, decadeOfDays)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := checkCommonName(*name); err != nil {
			return err
		}
		if err := checkDays(*days); err != nil {
			return err
		}
		pair, err := authority.Create(args[0], *name, time.Duration(*days)*day)
		return a.printPair(pair, err)
	}
	return cmd
}

func newCertServer(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "server DIR",
		Short: "Sign the certificate of a server",
		Long: `Server makes server-ID.pem and server-ID.key in DIR. The pair serves clients (--tls-cert) and
other servers (--peer-cert).

--host are the names and addresses at which clients and other servers reach the server. The
host of its peer address must be among them, or --cluster is given: then the certificate
names the server as conclave://CLUSTER/ID, and its peer address may change.`,
		Example: `  conclave cert server certs --id 1 --host 10.0.0.1
  conclave cert server certs --id 2 --host db2.example.com,10.0.0.2,localhost --days 90
  conclave cert server certs --id 3 --host 10.0.0.3 --cluster 68b1d2f03c5e4a97`,
	}
	var s authority.Server
	cmd.Flags().Uint64Var(&s.ID, "id", 0, "id of the server, from 1 up")
	cmd.Flags().StringSliceVar(&s.Hosts, "host", nil, "names and IP addresses of the server, with commas between")
	cmd.Flags().StringVar(&s.Cluster, "cluster", "", "name the server by a URI of this cluster, 16 hexadecimal digits")
	days := addDays(cmd, yearOfDays)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		s.Cluster = strings.ToLower(s.Cluster)
		if err := checkCertServer(s); err != nil {
			return err
		}
		pair, err := issue(cmd, args[0], *days, func(by *authority.Authority, valid time.Duration) (authority.Pair, error) {
			return by.Server(s, valid)
		})
		return a.printPair(pair, err)
	}
	return cmd
}

func newCertClient(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "client DIR",
		Short: "Sign the certificate of a program or a person",
		Long: `Client makes NAME.pem and NAME.key in DIR. Servers with --tls-ca know who shows them as
cert:NAME.`,
		Example: `  conclave cert client certs --name alice
  conclave cert client certs --name nightly-report --days 30`,
	}
	name := cmd.Flags().String("name", "", "name of the client: letters, digits and . _ @ -")
	days := addDays(cmd, yearOfDays)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := checkCertClient(*name); err != nil {
			return err
		}
		pair, err := issue(cmd, args[0], *days, func(by *authority.Authority, valid time.Duration) (authority.Pair, error) {
			return by.Client(*name, valid)
		})
		return a.printPair(pair, err)
	}
	return cmd
}

// issue has the authority in dir sign a certificate. It is valid no longer than the
// authority: one that was asked for expressly is refused, the default is shortened.
func issue(cmd *cobra.Command, dir string, days int, sign func(*authority.Authority, time.Duration) (authority.Pair, error)) (authority.Pair, error) {
	if err := checkDays(days); err != nil {
		return authority.Pair{}, err
	}
	by, err := authority.Open(dir)
	if err != nil {
		return authority.Pair{}, err
	}
	valid, left := time.Duration(days)*day, time.Until(by.Expires())
	end := by.Expires().UTC().Format(time.DateOnly)
	switch {
	case left <= 0:
		return authority.Pair{}, fmt.Errorf("%s: the authority expired on %s: make one in another directory", dir, end)
	case valid > left && cmd.Flags().Changed("days"):
		return authority.Pair{}, fmt.Errorf("--days: %d: the authority expires on %s: give at most %d", days, end, left/day)
	}
	return sign(by, min(valid, left))
}

func checkDays(days int) error {
	if days < 1 || days > maxDays {
		return fmt.Errorf("--days: %d: must be between 1 and %d", days, maxDays)
	}
	return nil
}

// maxCommonName is the longest name that a certificate may have, by RFC 5280.
const maxCommonName = 64

func checkCommonName(name string) error {
	switch {
	case name == "":
		return errors.New("--name: missing")
	case len(name) > maxCommonName:
		return fmt.Errorf("--name: %d bytes: must have at most %d", len(name), maxCommonName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("--name: %q: must be UTF-8 without control characters", name)
	}
	return nil
}

var (
	// fileName is what both a file and a client may be called.
	fileName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._@-]*$`)
	// hostName is a name in DNS, with a wildcard in front at most.
	hostName = regexp.MustCompile(`^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)
	// clusterID is the identity of a cluster.
	clusterID = regexp.MustCompile(`^[0-9a-f]{16}$`)
	// ofServer is the name of a server's files.
	ofServer = regexp.MustCompile(`^server-[0-9]+$`)
)

func checkCertClient(name string) error {
	if err := checkCommonName(name); err != nil {
		return err
	}
	switch {
	case !fileName.MatchString(name):
		return fmt.Errorf("--name: %q: use letters, digits and . _ @ - only, beginning with a letter or digit", name)
	case name == "ca" || ofServer.MatchString(name):
		return fmt.Errorf("--name: %q: its files would be those of the authority or of a server: choose another name", name)
	}
	return nil
}

func checkCertServer(s authority.Server) error {
	if s.ID == 0 {
		return errors.New("--id: missing: give the id of the server, from 1 up")
	}
	if len(s.Hosts) == 0 {
		return errors.New("--host: missing: give the names and addresses at which the server is reached")
	}
	for _, host := range s.Hosts {
		name, port, _ := net.SplitHostPort(host)
		_, err := strconv.ParseUint(port, 10, 16)
		switch {
		case isHost(host):
		case err == nil && isHost(name):
			return fmt.Errorf("--host: %q: has a port: give %q", host, name)
		default:
			return fmt.Errorf("--host: %q: expected a name such as db1.example.com or an IP address", host)
		}
	}
	if s.Cluster != "" && !clusterID.MatchString(s.Cluster) {
		return fmt.Errorf("--cluster: %q: expected 16 hexadecimal digits, as conclave status shows them", s.Cluster)
	}
	return nil
}

func isHost(text string) bool {
	return net.ParseIP(text) != nil || len(text) <= 253 && hostName.MatchString(text)
}

type pairView struct {
	Cert    string    `json:"cert"`
	Key     string    `json:"key"`
	Expires time.Time `json:"expires"`
}

func (a *app) printPair(pair authority.Pair, err error) error {
	if err != nil {
		return err
	}
	return a.print(pairView(pair), func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s and %s, valid until %s\n", shown(pair.Cert), shown(pair.Key), pair.Expires.Format(time.DateOnly))
		return err
	})
}
