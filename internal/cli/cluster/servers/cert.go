package servers

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/kit/authority"
)

const certHelp = `A cluster on more than one machine needs certificates. This authority is for tests and small
clusters: it keeps no list of what it signed, and cannot revoke certificates. Certificates of
any other authority work too. docs/operations.md says what they must contain.

DIR is the directory of the authority: its certificate ca.pem, its key ca.key, and what it
signed. A process with ca.key can act as any server and any client. Therefore keep DIR away from
the servers, and copy to each machine only ca.pem and its own two files. Keys have mode 0600. The
command never replaces a file.

To renew a certificate, move the old files away, create new ones, and copy them over those on
the server. Servers read the files again when they change.`

// NewCert returns the command cert.
func NewCert(a *ui.App) *cobra.Command {
	cmd := ui.Group(&cobra.Command{
		Use:   "cert",
		Short: "Create certificates for servers and clients",
		Long:  certHelp,
		Example: `  conclave cert authority certs
  conclave cert server certs --id 1 --host 10.0.0.1,db1.example.com
  conclave cert client certs --name alice`,
	}, newCertAuthority(a), newCertServer(a), newCertClient(a))
	for _, sub := range cmd.Commands() {
		sub.Args = ui.Takes("DIR")
		a.WithJSON(sub)
	}
	return cmd
}

const (
	day = 24 * time.Hour
	// maxDays bounds how long a certificate is valid, so that its years have four digits.
	maxDays = 36500
	// yearOfDays is the default for servers and clients, and decadeOfDays for an authority.
	yearOfDays, decadeOfDays = 365, 3650
)

func addDays(cmd *cobra.Command, standard int) *int {
	return cmd.Flags().Int("days", standard, "how many days the certificate is valid")
}

func newCertAuthority(a *ui.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "authority DIR",
		Short: "Create a certificate authority in a directory",
		Long:  "The command creates DIR, DIR/ca.pem and DIR/ca.key. It never replaces a file.",
		Example: `  conclave cert authority certs
  conclave cert authority certs-json --json
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
		return printPair(a, pair, err)
	}
	return cmd
}

func newCertServer(a *ui.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "server DIR",
		Short: "Sign the certificate of a server",
		Long: `The command creates server-ID.pem and server-ID.key in DIR. The server uses the pair for clients
(--tls-cert) and for other servers (--peer-cert).

--host lists all names and addresses at which clients and other servers reach the server. It
must contain the host of the peer address. With --cluster this is not necessary: the certificate
then names the server as conclave://CLUSTER/ID, and its peer address may change.`,
		Example: `  conclave cert server certs --id 1 --host 10.0.0.1
  conclave cert server certs --id 2 --host db2.example.com,10.0.0.2,localhost --days 90
  conclave cert server certs --id 3 --host 10.0.0.3 --cluster 68b1d2f03c5e4a97`,
	}
	var s authority.Server
	cmd.Flags().Uint64Var(&s.ID, "id", 0, "id of the server, at least 1")
	cmd.Flags().StringSliceVar(&s.Hosts, "host", nil, "`names` and IP addresses of the server, separated by commas")
	cmd.Flags().StringVar(&s.Cluster, "cluster", "", "add a URI with this cluster `id`, 16 hexadecimal digits")
	days := addDays(cmd, yearOfDays)
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		s.Cluster = strings.ToLower(s.Cluster)
		if err := checkCertServer(s); err != nil {
			return err
		}
		pair, err := issue(cmd, args[0], *days, func(by *authority.Authority, valid time.Duration) (authority.Pair, error) {
			return by.Server(s, valid)
		})
		return printPair(a, pair, err)
	}
	return cmd
}

func newCertClient(a *ui.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "client DIR",
		Short: "Sign the certificate of a program or a person",
		Long: `The command creates NAME.pem and NAME.key in DIR. To servers with --tls-ca, a program that shows
this certificate is the principal cert:NAME.`,
		Example: `  conclave cert client certs --name alice
  conclave cert client certs --name bob@example.com --json
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
		return printPair(a, pair, err)
	}
	return cmd
}

// issue signs a certificate with the authority in dir. The certificate must not outlive the
// authority: a longer --days is refused, and a longer default is shortened.
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
		return authority.Pair{}, fmt.Errorf("%s: the authority expired on %s; create one in another directory", dir, end)
	case valid > left && cmd.Flags().Changed("days"):
		return authority.Pair{}, fmt.Errorf("--days: %d: must be at most %d, because the authority expires on %s", days, left/day, end)
	}
	return sign(by, min(valid, left))
}

func checkDays(days int) error {
	if days < 1 || days > maxDays {
		return fmt.Errorf("--days: %d: must be between 1 and %d", days, maxDays)
	}
	return nil
}

// maxCommonName is the length of the longest common name, in bytes [RFC 5280].
const maxCommonName = 64

func checkCommonName(name string) error {
	switch {
	case name == "":
		return errors.New("--name: missing; set it to a name such as alice")
	case len(name) > maxCommonName:
		return fmt.Errorf("--name: %d bytes: must have at most %d bytes", len(name), maxCommonName)
	case !utf8.ValidString(name):
		return fmt.Errorf("--name: %q: must be valid UTF-8", name)
	case strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("--name: %q: must not contain control characters", name)
	}
	return nil
}

var (
	// fileName matches the names of clients, which are also names of files.
	fileName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._@-]*$`)
	// hostName matches a DNS name. It may begin with a wildcard.
	hostName = regexp.MustCompile(`^(\*\.)?[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)
	// clusterID matches the id of a cluster.
	clusterID = regexp.MustCompile(`^[0-9a-f]{16}$`)
	// ofServer matches the name of a server's files.
	ofServer = regexp.MustCompile(`^server-[0-9]+$`)
)

func checkCertClient(name string) error {
	if err := checkCommonName(name); err != nil {
		return err
	}
	switch {
	case !fileName.MatchString(name):
		return fmt.Errorf("--name: %q: must consist of letters, digits and . _ @ -, and begin with a letter, a digit or _", name)
	case name == "ca" || ofServer.MatchString(name):
		return fmt.Errorf("--name: %q: reserved for the files of the authority and of servers; choose another name", name)
	}
	return nil
}

func checkCertServer(s authority.Server) error {
	if s.ID == 0 {
		return errors.New("--id: missing; set it to the id of the server, at least 1")
	}
	if len(s.Hosts) == 0 {
		return errors.New("--host: missing; set it to the names and addresses of the server")
	}
	for _, host := range s.Hosts {
		name, port, _ := net.SplitHostPort(host)
		_, err := strconv.ParseUint(port, 10, 16)
		switch {
		case isHost(host):
		case err == nil && isHost(name):
			return fmt.Errorf("--host: %q: must not have a port; use %q", host, name)
		default:
			return fmt.Errorf("--host: %q: expected a name such as db1.example.com or an IP address", host)
		}
	}
	if s.Cluster != "" && !clusterID.MatchString(s.Cluster) {
		return fmt.Errorf("--cluster: %q: expected 16 hexadecimal digits, as `conclave status` shows them", s.Cluster)
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

func printPair(a *ui.App, pair authority.Pair, err error) error {
	if err != nil {
		return err
	}
	return a.PrintLine(pairView(pair), fmt.Sprintf("%s and %s, valid until %s", ui.Shown(pair.Cert), ui.Shown(pair.Key), pair.Expires.Format(time.DateOnly)))
}
