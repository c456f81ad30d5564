package cli

import (
	"bytes"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/conclave-io/conclave/internal/cli/ui"
)

// file finds usage texts of flags that name files.
var file = regexp.MustCompile(`(?i)\b(file|directory|folder|socket)\b`)

// refusal is what is said of a "-" where no stream is possible.
const refusal = `"-": standard input and output are not possible here; use ./- for a file with this name`

// streaming are the flags and arguments that take "-" as standard input or output. Each has a test.
var streaming = map[string]func(*testing.T){
	"conclave snapshot save FILE":         snapshotsStream,
	"conclave snapshot inspect FILE":      snapshotsStream,
	"conclave snapshot restore FILE":      snapshotsStream,
	"conclave access apply FILE":          rulesStream,
	"conclave audit-log FILE":             auditLogStreams,
	"conclave sim FILE":                   scenariosStream,
	"conclave lab FILE":                   nil, // TestLabReadsStandardInput of internal/cli/lab
	"conclave check --scenario":           scenariosStream,
	"conclave sim --out":                  tracesStream,
	"conclave compare --plot":             plotsStream,
	"conclave access token create --file": tokensStream,
	"conclave access token rotate --file": tokensStream,
	"conclave member add --file":          joinTokensStream,
	"conclave serve --audit-log":          nil, // TestAuditLogOnStandardOutput of internal/test/e2e
}

// TestDash gives "-" to every flag and every argument that names a file or a directory. It is standard
// input or output, or it is refused in one line. No file with this name is used.
func TestDash(t *testing.T) {
	t.Chdir(t.TempDir())
	var stream []string
	eachCommand(Command(), func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		path := cmd.CommandPath()
		check := func(f *pflag.Flag) {
			names, dash := ui.NamesFile(f)
			named := path + " --" + f.Name
			switch {
			case strings.Contains(f.Usage, "- for standard output"): // a setting of a server
				stream = append(stream, named)
			case dash:
				stream = append(stream, named)
			case names || f.Value.Type() == "string" && file.MatchString(f.Usage):
				refused(t, "--"+f.Name+": ", append(filled(cmd, "x"), "--"+f.Name+"=-"))
			}
		}
		cmd.LocalNonPersistentFlags().VisitAll(check)
		if path == "conclave status" {
			cmd.InheritedFlags().VisitAll(check)
		}
		switch word, dash := ui.FileArgument(cmd); {
		case dash:
			stream = append(stream, path+" "+word)
		case word != "":
			refused(t, word+": ", filled(cmd, "-"))
		}
	})
	slices.Sort(stream)
	if want := slices.Sorted(maps.Keys(streaming)); !slices.Equal(stream, want) {
		t.Errorf("a stream is taken by\n%s\nand tested for\n%s", strings.Join(stream, "\n"), strings.Join(want, "\n"))
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("%v was created, %v", left, err)
	}
}

// filled returns the command line of a command with a value for each argument, and with one for each
// that names a file.
func filled(cmd *cobra.Command, name string) []string {
	args := strings.Fields(cmd.CommandPath())[1:]
	word, _ := ui.FileArgument(cmd)
	for _, w := range strings.Fields(cmd.Use)[1:] {
		switch {
		case strings.HasPrefix(w, "[") && !strings.Contains(w, word), strings.HasPrefix(w, "--"):
			return args // options begin here
		case word != "" && strings.Contains(w, word):
			return append(args, name)
		}
		args = append(args, "x")
	}
	return args
}

// refused requires that a command line fails with one line, which begins with what is wrong.
func refused(t *testing.T, what string, args []string) {
	t.Helper()
	status, printed, said := inProcess(args...)
	if want := "conclave: " + what + refusal + "\n"; status == 0 || printed != "" || said != want {
		t.Errorf("%q: status %d, %q, %q", args, status, printed, said)
	}
}

// A variable that sets a flag is checked as the flag is.
func TestDashInTheEnvironment(t *testing.T) {
	for variable, c := range map[string]struct{ what, command string }{
		"CONCLAVE_CACERT": {"--cacert: ", "status"}, "CONCLAVE_TOKEN_FILE": {"--token-file: ", "locks"},
		"CONCLAVE_CONFIG": {"--config: ", "serve"}, "CONCLAVE_TLS_CERT": {"CONCLAVE_TLS_CERT: ", "serve"},
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, "-")
			refused(t, c.what, []string{c.command})
			if status, _, said := inProcess("version"); status != 0 {
				t.Errorf("a command that needs no file: %s", said)
			}
		})
	}
}

func TestStreams(t *testing.T) {
	for what, test := range streaming {
		if test != nil {
			t.Run(what, test)
		}
	}
}

// piped runs a command line with an input, which must succeed.
func piped(t *testing.T, input string, args ...string) (printed, said string) {
	t.Helper()
	var out, text bytes.Buffer
	if status := run(strings.NewReader(input), &out, &text, args...); status != 0 {
		t.Fatalf("%q: status %d, %s", args, status, text.String())
	}
	return out.String(), text.String()
}

func snapshotsStream(t *testing.T) {
	t.Chdir(t.TempDir())
	server := oneServer(t)[1]
	backup, said := piped(t, "", "snapshot", "save", "-", "--servers", server)
	if !strings.HasPrefix(backup, "CONCLAVE BACKUP\n") || !strings.Contains(said, "checksum valid") {
		t.Fatalf("%.100q, %q", backup, said)
	}
	if printed, _ := piped(t, backup, "snapshot", "inspect", "-"); !strings.Contains(printed, "newest fence 0") {
		t.Errorf("%q", printed)
	}
	if printed, _ := piped(t, backup, "snapshot", "restore", "-", "--data", "data"); !strings.Contains(printed, "data is ready") {
		t.Errorf("%q", printed)
	}
	if status, _, said := inProcess("snapshot", "restore", "--data", "data"); status == 0 {
		t.Error(said)
	}
}

func rulesStream(t *testing.T) {
	server := oneServer(t)[5] // its admin socket
	piped(t, "", "access", "init", "--admin", "cert:root", "--servers", server)
	rules, _ := piped(t, "", "access", "show", "--servers", server)
	piped(t, rules, "access", "apply", "-", "--dry-run", "--servers", server)
}

func auditLogStreams(t *testing.T) {
	var out, text bytes.Buffer
	status := run(strings.NewReader("no record\n"), &out, &text, "audit-log", "--verify", "-")
	if status != ui.StatusNo || !strings.HasPrefix(out.String(), "-:1: ") {
		t.Errorf("status %d, %q, %q", status, out.String(), text.String())
	}
}

func scenariosStream(t *testing.T) {
	var out, text bytes.Buffer
	if status := run(nil, &out, &text, "check", "maekawa-slides", "-n", "3", "--scenario", "-"); status != 1 {
		t.Fatal(status, text.String())
	}
	if !strings.Contains(text.String(), "violation") {
		t.Errorf("the verdict is not on standard error: %q", text.String())
	}
	printed, _ := piped(t, out.String(), "sim", "-")
	if !strings.Contains(printed, "maekawa-slides") {
		t.Errorf("%q", printed)
	}
}

func tracesStream(t *testing.T) {
	t.Chdir(t.TempDir())
	same := []string{"sim", "--algorithm", "lamport", "-n", "3", "--trace", "svg"}
	one, _ := piped(t, "", same...)
	two, said := piped(t, "", append(same, "--out", "-")...)
	if one != two || !strings.HasPrefix(one, "<svg") || !strings.Contains(said, "lamport") {
		t.Errorf("%.100q, %.100q, %q", one, two, said)
	}
}

func plotsStream(t *testing.T) {
	t.Chdir(t.TempDir())
	plot, said := piped(t, "", "compare", "-n", "3", "--algorithms", "lamport", "--plot", "-")
	if !strings.HasPrefix(plot, "<svg") || !strings.Contains(said, "lamport") {
		t.Errorf("%.100q, %q", plot, said)
	}
}

func tokensStream(t *testing.T) {
	t.Chdir(t.TempDir())
	server := oneServer(t)[5] // its admin socket
	piped(t, "", "access", "init", "--admin", "cert:root", "--servers", server)
	for _, what := range []string{"create", "rotate"} {
		token, _ := piped(t, "", "access", "token", what, "reports", "--file", "-", "--servers", server)
		if !strings.HasPrefix(token, "cvt1_") || strings.Count(token, "\n") != 1 {
			t.Errorf("%s: %q", what, token)
		}
	}
}

func joinTokensStream(t *testing.T) {
	t.Chdir(t.TempDir())
	server := oneServer(t)[1]
	printed, _ := piped(t, "", "member", "add", "127.0.0.1:7999", "--file", "-", "--servers", server)
	if !strings.HasPrefix(printed, "conclave serve --join ") {
		t.Errorf("%q", printed)
	}
}
