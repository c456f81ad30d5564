// Package attack tests attacks that a cluster must withstand. Each attack is a function that runs
// against real servers over gRPC, HTTP and raw sockets.
package attack

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	// The attacks wait for elections and leases most of the time.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// attack is one attack and its expected result. "Same" means that the victim's hold, fence and context
// have not changed.
type attack struct {
	number   int
	what     string
	expected string
	// secure means that the attack needs a cluster whose clients have certificates.
	secure bool
	// apart means that the attack starts its own servers, and may run in parallel with others.
	apart bool
	run   func(*world)
	// elsewhere names the folder and the test function of an attack in another package. Such an
	// attack needs the internals of that package. Then run is nil.
	elsewhere string
}

var attacks = []attack{
	{number: 1, what: "release with the session_id of a list, with and without s-, as bytes", expected: "INVALID or SESSION_GONE; same", run: releaseByID},
	{number: 2, what: "renew with the session_id of a list, with and without s-, as bytes", expected: "INVALID or SESSION_GONE; same", run: renewByID},
	{number: 3, what: "acquire with the session_id of a list, with and without s-, as bytes", expected: "INVALID or SESSION_GONE; same", run: acquireByID},
	{number: 4, what: "close with the session_id of a list, with and without s-, as bytes", expected: "INVALID or SESSION_GONE; same", run: closeByID},
	{number: 5, what: "a stolen secret with another certificate", expected: "SESSION_GONE; same", secure: true, run: stolenSecret},
	{number: 6, what: "a stolen secret with another certificate, Open and Acquire in one frame before those of the owner", expected: "a session of its own; same", secure: true, run: stolenBeforehand},
	{number: 7, what: "search log, snapshots, backup, lists, metrics and debug log for the secrets of all sessions", expected: "not found", run: searchForSecrets},
	{number: 8, what: "end a session that holds and renews", expected: "told by one message; the next grant only after its release", run: endSession},
	{number: 9, what: "ignore the end of one's session: go on renewing and acquiring", expected: "REVOKED; dropped after one TTL", run: ignoreTheEnd},
	{number: 10, what: "close one of two copies of a program", expected: "the other is told at once", run: closeACopy},
	{number: 11, what: "end a session, remove a server, join, hand the leadership over, take a backup, read and change rules, lower the level, change a guard, revoke, as a viewer, without a role, and as nobody", expected: "DENIED, UNAUTHENTICATED; same; on record", apart: true, run: administerWithoutVerb},
	{number: 12, what: "every gRPC method and HTTP route without a proof, and with one that proves nobody", expected: "UNAUTHENTICATED but for the two health routes and the files of the page", apart: true, run: callWithoutProof},
	{number: 13, what: "acquire outside a prefix, at its edge, below a deny, beside an exact name, in the other class", expected: "DENIED", apart: true, run: acquireWithoutRight},
	{number: 14, what: "list, page, watch, observe, explain and try names without the verb read, and read who did what to them", expected: "absent", apart: true, run: readWithoutRight},
	{number: 15, what: "go on waiting and acquiring after the right was withdrawn", expected: "nothing behind the entry is granted; holds stay", apart: true, run: withdrawARight},
	{number: 16, what: "servers that other machines reach and that are started with --access open, in a cluster with rules", expected: "rules hold", apart: true, run: openAgainstRules},
	{number: 17, what: "say on the client port what servers say of a caller", expected: "ignored", secure: true, run: vouchForOneself},
	{number: 18, what: "gRPC on the peer port with a client's certificate", expected: "handshake refused", secure: true, run: callAsAServer},
	{number: 19, what: "introduce oneself as a server, with a certificate for another host, of another server, or of a client", expected: "refused, and logged; raft never meets it", elsewhere: "internal/service/transport TestWhoseCertificateIsThat"},
	{number: 20, what: "certificates of another cluster's server, with two URIs, no name, *, control characters, 300 bytes", expected: "refused", elsewhere: "internal/service/server TestACertificateThatNamesNobodyIsRefused"},
	{number: 21, what: "join without the verb; with a join token twice, late, for another address, after its server was removed; do anything else with it", expected: "DENIED, UNAUTHENTICATED; one server joins", apart: true, run: joinByToken},
	{number: 22, what: "go on with a token that is revoked or expired while its stream is open", expected: "UNAUTHENTICATED; stream cut within a second; holds stay until their deadline", apart: true, run: tokensThatEnd},
	{number: 25, what: "a bearer that proves nobody beside a good certificate", expected: "UNAUTHENTICATED; same", secure: true, run: bearerBesideACertificate},
	{number: 26, what: "a page of another origin, a rebound Host, a form", expected: "403, 421", apart: true, run: pagesOfOthers},
	{number: 27, what: "escapes, newlines, bad UTF-8 and 64 KiB in program, host, reason, name and header", expected: "refused; lists and logs stay one line each", run: plantBadTexts},
	{number: 28, what: "sessions, claims and values without end, and the state to its limit", expected: "QUOTA, STATE_LIMIT; others are served; a server that was down gets all of it", apart: true, run: takeTooMuch},
	{number: 29, what: "64 streams that flood, streams, watches and requests without end, and connections that say nothing", expected: "renewals, acquisitions and releases of others are on time; RESOURCE_EXHAUSTED, QUOTA; the oldest connections go", apart: true, run: exhaustTheServer},
	{number: 30, what: "numbers of requests chosen to collide in the tables of a server", expected: "no slower than others", elsewhere: "internal/service/registry TestChosenNumbersDoNotCollide"},
	{number: 32, what: "10,000 administrative calls that are refused", expected: "the cluster still has the last real act on record", apart: true, run: floodTheRecord},
	{number: 33, what: "read certificates again 100 times under load: good ones, half of a pair, expired ones, no certificate; take an authority out", expected: "nothing is lost; those before stay in use; programs and servers that only it vouched for are cut at once", apart: true, run: replaceUnderLoad},
	{number: 34, what: "wait until the certificates of servers expire while they run", expected: "links stay, grants go on; new handshakes refused, and said", apart: true, run: peersThatExpire},
	{number: 35, what: "cut the log of a single server, or overwrite its end with zeros", expected: "refused, or whole; never a smaller fence beyond the last second", apart: true, run: lostEnd},
	{number: 36, what: "an older release on newer data, a newer one on too old data, an old one joins, raise while one is down, an old one after raising", expected: "78, or a refusal that names the release; not raised", elsewhere: "internal/test/upgrade TestUpgrade"},
	{number: 37, what: "--wait 1s against nothing, a held lock, servers that are stopped, a minority", expected: "125, 124, 125, 125", apart: true, run: waitWithoutAnswer},
	{number: 38, what: "a command under conclave lock and conclave elect looks for the token in environments, open files and arguments of all processes", expected: "none", apart: true, run: searchUnderALock},
	{number: 42, what: "call a server of a new cluster from another machine, before there are rules", expected: "DENIED, until there are rules", elsewhere: "internal/service/server TestClosedByDefault"},
	{number: 43, what: "bring a cluster that is in use to the level of rules", expected: "nobody is locked out", elsewhere: "internal/service/server TestFromBefore"},
	{number: 44, what: "turn rules on while anonymous programs hold locks", expected: "refused; or they are told first", elsewhere: "internal/service/server TestOpened"},
	{number: 48, what: "get a lock that stays closed after its hold, by any request; see who held it without the right; close more names than a quota allows", expected: "HELD, DENIED, QUOTA", apart: true, run: enterClosed},
}

func TestAttacks(t *testing.T) {
	open, secure := newTarget(t, false), newTarget(t, true)
	for _, a := range attacks {
		t.Run(a.name(), func(t *testing.T) {
			if a.run == nil {
				t.Skip("run by " + a.elsewhere)
			}
			if a.apart {
				t.Parallel()
			}
			t.Logf("attack %d: %s; expected: %s", a.number, a.what, a.expected)
			g := open
			if a.secure {
				g = secure
			}
			a.run(&world{T: t, target: g, prefix: a.name() + "/"})
		})
	}
}

// TestAttacksElsewhere checks that the tests of attacks in other packages exist.
func TestAttacksElsewhere(t *testing.T) {
	for _, a := range attacks {
		if (a.run == nil) != (a.elsewhere != "") {
			t.Errorf("attack %d: it needs a function or the name of a test, not both", a.number)
		}
		if folder, test, _ := strings.Cut(a.elsewhere, " "); a.run == nil && !declares(t, filepath.Join("..", "..", "..", folder), test) {
			t.Errorf("attack %d: %s: no such test", a.number, a.elsewhere)
		}
	}
}

// declares reports whether the tests in a folder declare a function.
func declares(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(parsed.Decls, func(d ast.Decl) bool {
			f, ok := d.(*ast.FuncDecl)
			return ok && f.Recv == nil && f.Name.Name == name
		})
	})
}
