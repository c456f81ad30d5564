package property

import (
	"slices"

	"github.com/conclave-io/conclave/process"
)

// Token is where the one token is: with its holder, or if that is None on its way. A
// token that its sender repeats is the same one.
type Token struct {
	Holder   process.ID
	From, To process.ID // the link that it took last
}

// Entered judges that p entered with the token.
func (t *Token) Entered(c *process.Config, p process.ID) *Violation {
	if p == t.Holder {
		return nil
	}
	return broken(process.OneToken, p, "%s entered without the token: it is %s", c.Text(p), t.where(c))
}

// Sent judges a token that p sends. It is the same if p sent the same message last.
func (t *Token) Sent(c *process.Config, p, to process.ID, same bool) *Violation {
	if p == t.Holder {
		*t = Token{process.None, p, to}
		return nil
	}
	if same {
		return nil
	}
	return broken(process.OneToken, p, "%s sent a token that it did not have: the token is %s", c.Text(p), t.where(c))
}

// Received notes a token that reached p; current if its sender sent no other since. A
// copy of one that has come is for the machine to recognise.
func (t *Token) Received(p, from process.ID, current bool) {
	if t.Holder == process.None && p == t.To && from == t.From && current {
		t.Holder = p
	}
}

// LostWith reports whether the token may be lost if p crashes.
func (t *Token) LostWith(p process.ID) bool {
	return p == t.Holder || t.Holder == process.None && (p == t.From || p == t.To)
}

// Missing judges a state in which no event is enabled.
func (t *Token) Missing(c *process.Config) *Violation {
	if t.Holder != process.None {
		return nil
	}
	return broken(process.OneToken, process.None, "the token from %s to %s never arrived", c.Text(t.From), c.Text(t.To))
}

func (t *Token) where(c *process.Config) string {
	if t.Holder != process.None {
		return "with " + c.Text(t.Holder)
	}
	return "on its way from " + c.Text(t.From) + " to " + c.Text(t.To)
}

// Tokens counts the tokens of a state: those at machines and those on their way. It
// reports that it cannot say if the algorithm promises none, or may send a copy of its
// token.
func Tokens(spec *process.Spec, g *process.Global) (n int, known bool) {
	promises := slices.ContainsFunc(spec.Claims.Properties, func(c process.Claim) bool { return c.Property == process.OneToken })
	if !promises || g.Config.Option("mode", "") == "acks" {
		return 0, false
	}
	for _, m := range g.Machines {
		if b, ok := m.(process.Bearer); ok && b.HasToken() {
			n++
		}
	}
	for _, m := range g.Messages {
		if decl := spec.Message(m.Layer, m.Type); decl != nil && IsToken(decl.Name) {
			n++
		}
	}
	return n, true
}
