// Package servers has the commands that run servers: serve, dev, and what starts a cluster of its own
// to demonstrate or measure it. It also makes certificates.
package servers

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/service/auditlog"
	"github.com/conclave-io/conclave/internal/service/config"
	"github.com/conclave-io/conclave/internal/service/server"
	"github.com/conclave-io/conclave/web"
)

// stopTimeout bounds how long a server takes to stop after a signal.
const stopTimeout = 10 * time.Second

const serveHelp = `Without flags, the server is a cluster of one that serves only this machine.

Each setting is a flag, an environment variable (--peer-listen is CONCLAVE_PEER_LISTEN), or a key in
a TOML file (--config). A flag overrides the environment, and the environment overrides the file.

The server runs until SIGTERM or SIGINT. Then it hands over the leadership if it is the leader,
tells its clients, and stops. On SIGHUP it reloads its TLS files and the log level, and reopens its
audit log, so that the log can be rotated. If its standard input is a terminal, it stops on SIGHUP.
It also reloads TLS files when they change. Other settings require a restart.`

// NewServe returns the command serve.
func NewServe(a *ui.App) *cobra.Command {
	var (
		file string
		set  []*settingFlag
	)
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run one server of a cluster",
		Long:  serveHelp,
		Annotations: ui.Statuses("0 stopped by a signal",
			"78 a restart does not help: invalid settings, a data directory that is damaged or belongs to\nanother server, a release that cannot read the level of the cluster, the server was\nremoved from the cluster, or another process runs with its data",
			"125 another failure, such as an address in use"),
		Example: `  conclave serve
  conclave serve --config /etc/conclave.toml
  conclave serve --join 10.0.0.1:7400 --data /var/lib/conclave --listen 10.0.0.4:7400 \
    --peer-listen 10.0.0.4:7500 --tls-cert server.pem --tls-key server.key \
    --peer-cert peer.pem --peer-key peer.key --peer-ca peers-ca.pem
  conclave serve --id 1 --data /var/lib/conclave --listen 10.0.0.1:7400 \
    --peers 1=10.0.0.1:7500,2=10.0.0.2:7500,3=10.0.0.3:7500 \
    --tls-cert server.pem --tls-key server.key \
    --peer-cert peer.pem --peer-key peer.key --peer-ca peers-ca.pem`,
		Args: ui.NoArguments,
		RunE: func(*cobra.Command, []string) error {
			settings := func() (config.Server, error) { return serverConfig(file, set) }
			cfg, err := settings()
			if err != nil {
				return err
			}
			restWell()
			a.Serving = true
			return runServer(a, cfg, settings)
		},
	}
	cmd.Flags().StringVar(&file, "config", os.Getenv("CONCLAVE_CONFIG"), "TOML `file` with settings, under the names of these flags (CONCLAVE_CONFIG)")
	set = addSettings(cmd.Flags())
	return cmd
}

// settingFlag is a flag that stores its text.
type settingFlag struct {
	config.Setting
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

// Set also checks the value, so that the error names the flag.
func (f *settingFlag) Set(value string) error {
	f.value, f.given = value, true
	return f.Apply(new(config.Server), value)
}

// addSettings adds a flag for each setting of a server.
func addSettings(flags *pflag.FlagSet) []*settingFlag {
	flags.SortFlags = false
	var set []*settingFlag
	for _, s := range config.Settings {
		f := &settingFlag{Setting: s}
		set = append(set, f)
		flag := flags.VarPF(f, s.Key, "", s.Usage)
		if s.Switch {
			flag.NoOptDefVal = "true"
		}
	}
	return set
}

// serverConfig reads the settings. Flags override the environment, which overrides the file.
func serverConfig(file string, set []*settingFlag) (config.Server, error) {
	var cfg config.Server
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
	cfg.Version = ui.ReadBuild().Version
	var err error
	if cfg.Page, err = web.Handler(); err != nil {
		return cfg, err
	}
	cfg = cfg.WithDefaults()
	return cfg, cfg.Validate()
}

// runServer runs a server until a signal or an error of its own ends it. SIGHUP reloads its settings.
func runServer(a *ui.App, cfg config.Server, settings func() (config.Server, error)) (err error) {
	given, level := cfg, new(slog.LevelVar)
	if cfg.Log, err = cfg.Logger(a.Stderr, level); err != nil {
		return err
	}
	ending := []os.Signal{os.Interrupt, syscall.SIGTERM}
	hangups := make(chan os.Signal, 1) // a reload covers all signals before it
	if ui.IsTerminal(os.Stdin) {
		ending = append(ending, syscall.SIGHUP) // the terminal window was closed
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
	greet := a.Stdout
	if cfg.AuditLog == auditlog.StandardOutput {
		greet = a.Stderr
	}
	announce(greet, s)
	stopping := supervise(s, cfg.Log)
	err = attendUntil(ctx, s, hangups, func() { reload(s, &given, settings, level) })
	stopping()
	if err != nil {
		return err
	}
	stop() // a second signal ends the process at once
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	return s.Stop(ctx)
}

// announce prints where a server takes clients and servers, in the format of its log.
func announce(w io.Writer, s *server.Server) {
	cfg := s.Config()
	if cfg.LogFormat == config.LogJSON {
		slog.New(slog.NewJSONHandler(w, nil)).Info("serving", "server", cfg.ID, "cluster", s.Cluster(),
			"listen", s.Addr().String(), "peer_listen", s.PeerAddr().String(), "data", cfg.Data)
		return
	}
	fmt.Fprintf(w, "server %d of cluster %s takes clients at %s and servers at %s, data in %s\n",
		cfg.ID, s.Cluster(), s.Addr(), s.PeerAddr(), cfg.Data)
}

// LogsJSON reports whether a failed command is serve with JSON as the format of its log, as far as its
// settings could be read. Then the error that ends it is a line of that log.
func LogsJSON(cmd *cobra.Command) bool {
	format, file := cmd.Flags().Lookup("log-format"), cmd.Flags().Lookup("config")
	if cmd.CommandPath() != "conclave serve" || format == nil || file == nil {
		return false
	}
	var cfg config.Server
	if name := file.Value.String(); name != "" {
		_ = cfg.ReadFile(name) // what is wrong with it has been said
	}
	if given, is := os.LookupEnv("CONCLAVE_LOG_FORMAT"); is {
		cfg.LogFormat = given
	}
	if format.Changed {
		cfg.LogFormat = format.Value.String()
	}
	return cfg.LogFormat == config.LogJSON
}

// attendUntil reloads at each hangup until ctx ends or the server stops by itself. It returns why
// the server stopped.
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

// reload applies the settings that can change while a server runs: its certificates and its log
// level. It logs the names of other settings that have changed.
func reload(s *server.Server, given *config.Server, settings func() (config.Server, error), level *slog.LevelVar) {
	log := s.Config().Log
	_ = s.Reload() // it logs what it did
	s.Reopen()
	now, err := settings()
	if err != nil {
		log.Error("settings reloaded but invalid, the previous ones stay in use", "err", err)
		return
	}
	if now.LogLevel != given.LogLevel {
		_ = level.UnmarshalText([]byte(now.LogLevel)) // Validate has read it
		log.Log(context.Background(), level.Level(), "log level changed", "from", given.LogLevel, "to", now.LogLevel)
		given.LogLevel = now.LogLevel
	}
	if keys := given.Differing(now); len(keys) > 0 {
		log.Warn("changed settings require a restart", "settings", strings.Join(keys, ", "))
	}
}
