package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave/service/server"
)

// stopPatience is how long a server may take to stop when it is told to.
const stopPatience = 10 * time.Second

func newServe(a *app) *cobra.Command {
	var (
		file string
		set  []*settingFlag
	)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run one server of a cluster",
		Long: `Serve runs one server until it gets SIGTERM or SIGINT; then it hands leadership
over, if it has it, says farewell to its clients and stops.

Each setting can be given as a flag, in the environment as CONCLAVE_ and the
flag's name in capitals with _ for -, or under the flag's name in a TOML file
(--config, CONCLAVE_CONFIG). A flag counts before the environment, and that
before the file. Without any it is a cluster of one, for this machine alone.

Exit status:
    0  stopped by a signal
   78  a restart does not help: bad settings, a data directory that is damaged or
       another server's, or the server was removed from the cluster
  125  anything else, such as an address that is taken`,
		Example: `  conclave serve
  conclave serve --config /etc/conclave.toml
  conclave serve --join 10.0.0.1:7400 --data /var/lib/conclave --listen 10.0.0.4:7400 \
    --peer-listen 10.0.0.4:7500 --tls-cert server.pem --tls-key server.key \
    --peer-cert peer.pem --peer-key peer.key --peer-ca peers-ca.pem
  conclave serve --id 1 --data /var/lib/conclave --listen 10.0.0.1:7400 \
    --peers 1=10.0.0.1:7500,2=10.0.0.2:7500,3=10.0.0.3:7500 \
    --tls-cert server.pem --tls-key server.key \
    --peer-cert peer.pem --peer-key peer.key --peer-ca peers-ca.pem`,
		Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := serverConfig(file, set)
			if err != nil {
				return err
			}
			restWell()
			a.serving = true
			return a.serve(cfg)
		},
	}
	cmd.Flags().StringVar(&file, "config", os.Getenv("CONCLAVE_CONFIG"), "TOML file with settings, by the names of these flags (CONCLAVE_CONFIG)")
	set = addSettings(cmd.Flags())
	return cmd
}

// settingFlag is a flag that remembers what it was given.
type settingFlag struct {
	server.Setting
	value string
	given bool
}

func (f *settingFlag) String() string { return f.value }

func (f *settingFlag) Type() string {
	if f.Switch {
		return "bool"
	}
	return "string"
}

// Set tries the value, so that what is wrong with it is said with the flag.
func (f *settingFlag) Set(value string) error {
	f.value, f.given = value, true
	return f.Apply(new(server.Config), value)
}

// addSettings makes a flag of each setting of a server.
func addSettings(flags *pflag.FlagSet) []*settingFlag {
	flags.SortFlags = false
	var set []*settingFlag
	for _, s := range server.Settings {
		f := &settingFlag{Setting: s}
		set = append(set, f)
		flag := flags.VarPF(f, s.Key, "", s.Usage)
		if s.Switch {
			flag.NoOptDefVal = "true"
		}
	}
	return set
}

// serverConfig gathers the settings: flags over environment over file.
func serverConfig(file string, set []*settingFlag) (server.Config, error) {
	var cfg server.Config
	if file != "" {
		if err := cfg.ReadFile(file); err != nil {
			return cfg, err
		}
	}
	if err := cfg.ReadEnvironment(os.LookupEnv); err != nil {
		return cfg, err
	}
	for _, f := range set {
		if f.given {
			if err := f.Apply(&cfg, f.value); err != nil {
				return cfg, fmt.Errorf("--%s: %w", f.Key, err)
			}
		}
	}
	cfg.Version = readVersion().Version
	cfg = cfg.WithDefaults()
	return cfg, cfg.Validate()
}

// serve runs a server until a signal, or a fault of its own, ends it.
func (a *app) serve(cfg server.Config) (err error) {
	if cfg.Log, err = cfg.Logger(a.stderr); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := server.StartContext(ctx, cfg)
	if err != nil {
		return err
	}
	cfg = s.Config()
	fmt.Fprintf(a.stdout, "server %d of cluster %s takes clients at %s and servers at %s, data in %s\n",
		cfg.ID, s.Cluster(), s.Addr(), s.PeerAddr(), cfg.Data)
	select {
	case <-ctx.Done():
	case <-s.Done():
		if server.Removed(s.Err()) {
			return s.Err()
		}
		return fmt.Errorf("server %d stopped: %w", cfg.ID, s.Err())
	}
	stop() // a second signal ends the process at once
	patience, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	return s.Stop(patience)
}
