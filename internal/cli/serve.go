package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave/service/server"
	"github.com/conclave-io/conclave/web"
)

// stopPatience is how long a server may take to stop when it is told to.
const stopPatience = 10 * time.Second

const serveHelp = `Serve runs one server until it gets SIGTERM or SIGINT; then it hands leadership
over, if it has it, tells its clients and stops. With a terminal as its standard
input it also stops on SIGHUP.

Each setting can be given as a flag, in the environment as CONCLAVE_ and the
flag's name in capitals with _ for -, or under the flag's name in a TOML file
(--config, CONCLAVE_CONFIG). A flag counts before the environment, and that
before the file. Without any it is a cluster of one, for this machine alone.

Otherwise SIGHUP has it read its TLS files and the log level again, and open its audit
log again, which may have been moved. It also reads
the TLS files again when they change. Other settings need a restart.

Exit status:
    0  stopped by a signal
   78  a restart does not help: bad settings, a data directory that is damaged or
       another server's, a release that does not read the level of the cluster, or the
       server was removed from it
  125  anything else, such as an address that is taken`

func newServe(a *app) *cobra.Command {
	var (
		file string
		set  []*settingFlag
	)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run one server of a cluster",
		Long:  serveHelp,
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
			settings := func() (server.Config, error) { return serverConfig(file, set) }
			cfg, err := settings()
			if err != nil {
				return err
			}
			restWell()
			a.serving = true
			return a.serve(cfg, settings)
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
	var err error
	if cfg.Page, err = web.Handler(); err != nil {
		return cfg, err
	}
	cfg = cfg.WithDefaults()
	return cfg, cfg.Validate()
}

// serve runs a server until a signal, or a fault of its own, ends it. SIGHUP has it
// read its settings again.
func (a *app) serve(cfg server.Config, settings func() (server.Config, error)) (err error) {
	given, level := cfg, new(slog.LevelVar)
	if cfg.Log, err = cfg.Logger(a.stderr, level); err != nil {
		return err
	}
	ending := []os.Signal{os.Interrupt, syscall.SIGTERM}
	hangups := make(chan os.Signal, 1) // one stands for many
	if isTerminal(os.Stdin) {
		ending = append(ending, syscall.SIGHUP) // its window was closed
	} else {
		signal.Notify(hangups, syscall.SIGHUP)
		defer signal.Stop(hangups)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ending...)
	defer stop()
	s, err := server.StartContext(ctx, cfg)
	if err != nil {
		return err
	}
	cfg = s.Config()
	greet := a.stdout
	if cfg.AuditLog == server.StandardOutput {
		greet = a.stderr
	}
	fmt.Fprintf(greet, "server %d of cluster %s takes clients at %s and servers at %s, data in %s\n",
		cfg.ID, s.Cluster(), s.Addr(), s.PeerAddr(), cfg.Data)
	stopping := supervise(s, cfg.Log)
	err = attendUntil(ctx, s, hangups, func() { reload(s, &given, settings, level) })
	stopping()
	if err != nil {
		return err
	}
	stop() // a second signal ends the process at once
	patience, cancel := context.WithTimeout(context.Background(), stopPatience)
	defer cancel()
	return s.Stop(patience)
}

// attendUntil has a server reload whenever it is asked to, until ctx ends or the server
// does by itself; it returns why the server ended.
func attendUntil(ctx context.Context, s *server.Server, hangups <-chan os.Signal, reload func()) error {
	for {
		select {
		case <-hangups:
			reload()
		case <-ctx.Done():
			return nil
		case <-s.Done():
			if server.Removed(s.Err()) {
				return s.Err()
			}
			return fmt.Errorf("server %d stopped: %w", s.Config().ID, s.Err())
		}
	}
}

// reload takes over what can change while a server runs: its certificates and its log
// level. Other settings that differ from those it was given are named.
func reload(s *server.Server, given *server.Config, settings func() (server.Config, error), level *slog.LevelVar) {
	log := s.Config().Log
	_ = s.Reload() // it logs what it did
	s.Reopen()
	now, err := settings()
	if err != nil {
		log.Error("the settings were read again and refused; those before stay in use", "err", err)
		return
	}
	if now.LogLevel != given.LogLevel {
		_ = level.UnmarshalText([]byte(now.LogLevel)) // Validate has read it
		log.Log(context.Background(), level.Level(), "the log level has changed", "from", given.LogLevel, "to", now.LogLevel)
		given.LogLevel = now.LogLevel
	}
	if keys := given.Differing(now); len(keys) > 0 {
		log.Warn("settings that differ now need a restart", "settings", strings.Join(keys, ", "))
	}
}
