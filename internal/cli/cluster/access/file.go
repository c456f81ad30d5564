package access

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/conclave-io/conclave/admin"
	"github.com/conclave-io/conclave/internal/cli/ui"
	"github.com/conclave-io/conclave/internal/service/access"
)

// ruleFile is a file of rules: the roles, bindings and quotas of a cluster.
type ruleFile struct {
	// Names says which names of a client's certificate count. If it is empty, the cluster keeps
	// its own.
	Names  []string        `toml:"names"`
	Roles  []roleEntry     `toml:"role"`
	Binds  []admin.Binding `toml:"bind"`
	Quotas []admin.Quota   `toml:"quota"`
}

type roleEntry struct {
	Name  string      `toml:"name"`
	Rules []ruleEntry `toml:"rules"`
}

// ruleEntry is a rule: one of Allow and Deny, and at most one of Prefix and Name.
type ruleEntry struct {
	Allow  []string `toml:"allow"`
	Deny   []string `toml:"deny"`
	Class  string   `toml:"class"`
	Prefix *string  `toml:"prefix"`
	Name   *string  `toml:"name"`
}

// rule checks an entry and returns it as a rule.
func (e *ruleEntry) rule() (r access.Rule, err error) {
	r.Class = access.Any
	verbs := e.Allow
	switch {
	case len(e.Allow) == 0 && len(e.Deny) == 0:
		return r, errors.New("verbs: missing; set allow or deny to a list of verbs")
	case len(e.Allow) > 0 && len(e.Deny) > 0:
		return r, errors.New("allow: cannot be combined with deny")
	case e.Prefix != nil && e.Name != nil:
		return r, errors.New("prefix: cannot be combined with name")
	case len(e.Deny) > 0:
		r.Deny, verbs = true, e.Deny
	}
	if r.Verbs, err = access.ParseVerbs(strings.Join(verbs, ",")); err != nil {
		return r, err
	}
	if e.Class != "" {
		if r.Class, err = access.ParseClass(e.Class); err != nil {
			return r, err
		}
	}
	switch {
	case e.Prefix != nil:
		r.Name = *e.Prefix
	case e.Name != nil:
		r.Exact, r.Name = true, *e.Name
	}
	return access.ParseRule(r.String())
}

// readRules reads a file of rules, or standard input for "-". It returns the content in the form
// in which the cluster shows it, and all rules in the file.
func readRules(path string, stdin io.Reader) (wanted admin.Access, all []access.Rule, err error) {
	content, err := ui.ReadFile(path, stdin)
	if err != nil {
		return wanted, nil, err
	}
	var file ruleFile
	meta, err := toml.Decode(string(content), &file)
	if err != nil {
		return wanted, nil, fmt.Errorf("%s: %w", path, err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return wanted, nil, fmt.Errorf("%s: %q: unknown key; see `conclave access apply --help`", path, unknown[0].String())
	}
	wanted.Names, wanted.Bindings, wanted.Quotas = file.Names, file.Binds, file.Quotas
	for _, entry := range file.Roles {
		role := admin.Role{Name: entry.Name, Rules: []string{}}
		for i := range entry.Rules {
			rule, err := entry.Rules[i].rule()
			if err != nil {
				return wanted, nil, fmt.Errorf("%s: role %q: rule %d: %w", path, entry.Name, i+1, err)
			}
			role.Rules, all = append(role.Rules, rule.String()), append(all, rule)
		}
		wanted.Roles = append(wanted.Roles, role)
	}
	for _, b := range wanted.Bindings {
		slices.Sort(b.Roles)
	}
	return wanted, all, twice(path, wanted)
}

// twice reports an entry that is in a file twice. One of both would be lost.
func twice(path string, wanted admin.Access) error {
	seen := make(map[string]bool)
	for _, key := range slices.Concat(ui.Each(wanted.Roles, roleKey), ui.Each(wanted.Bindings, bindingKey), ui.Each(wanted.Quotas, quotaKeyOf)) {
		if seen[key] {
			return fmt.Errorf("%s: %s: duplicate; merge both entries", path, key)
		}
		seen[key] = true
	}
	return nil
}

func roleKey(r admin.Role) string       { return fmt.Sprintf("role %q", r.Name) }
func bindingKey(b admin.Binding) string { return fmt.Sprintf("bind %q", b.Who) }
func quotaKeyOf(q admin.Quota) string   { return "quota of " + ofQuota(q) }

// writeRules writes rules as a file that readRules reads.
func writeRules(w io.Writer, rules admin.Access) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# mode %s, revision %d\nnames = %s\n", rules.Mode, rules.Revision, tomlList(rules.Names))
	for _, role := range rules.Roles {
		fmt.Fprintf(&b, "\n[[role]]\nname = %s\nrules = [\n", tomlText(role.Name))
		for _, text := range role.Rules {
			rule, err := access.ParseRule(text)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, "  {%s},\n", ruleText(rule))
		}
		b.WriteString("]\n")
	}
	for _, bind := range rules.Bindings {
		fmt.Fprintf(&b, "\n[[bind]]\nwho = %s\nroles = %s\n", tomlText(bind.Who), tomlList(bind.Roles))
	}
	for _, q := range rules.Quotas {
		b.WriteString("\n[[quota]]\n")
		if q.Who != "" {
			fmt.Fprintf(&b, "who = %s\n", tomlText(q.Who))
		} else {
			fmt.Fprintf(&b, "prefix = %s\n", tomlText(q.Prefix))
		}
		for _, amount := range amountsOf(q) {
			fmt.Fprintf(&b, "%s = %d\n", amount.name, amount.n)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// ruleText returns the inside of the table of a rule.
func ruleText(rule access.Rule) string {
	key := "allow"
	if rule.Deny {
		key = "deny"
	}
	text := key + " = " + tomlList(strings.Split(rule.Verbs.String(), ","))
	if rule.Class != access.Any {
		text += ", class = " + tomlText(rule.Class.String())
	}
	switch {
	case rule.Exact:
		text += ", name = " + tomlText(rule.Name)
	case rule.Name != "":
		text += ", prefix = " + tomlText(rule.Name)
	}
	return text
}

// tomlText quotes a text without control characters.
func tomlText(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

func tomlList(texts []string) string {
	return "[" + strings.Join(ui.Each(texts, tomlText), ", ") + "]"
}
