package course

import (
	"fmt"
	"regexp"
	"strings"
)

// difference is how package scenario writes what a run has and what was expected.
var difference = regexp.MustCompile(`^(.+?): (.+), expected (.+)$`)

// Plain returns a sentence for a difference between a run and what its scenario expects, for
// readers who know the goal of a challenge but not the keys of a scenario.
func Plain(unmet string) string {
	if text, is := strings.CutPrefix(unmet, "violation: none, expected a violation of "); is {
		return "This run breaks no promise. The goal is a violation of " + text + "."
	}
	parts := difference.FindStringSubmatch(unmet)
	if parts == nil {
		if text, is := strings.CutPrefix(unmet, "violation: "); is {
			return "This run breaks a promise: " + text + "."
		}
		return sentence(unmet)
	}
	what, got, want := parts[1], parts[2], parts[3]
	switch what {
	case "waiting":
		return fmt.Sprintf("At the end %s. The goal is %s.", processes(got, "waits", "wait"), want)
	case "inside":
		return fmt.Sprintf("At the end %s. The goal is %s.", processes(got, "is inside", "are inside"), want)
	case "entries":
		return fmt.Sprintf("The number of entries is %s. The goal is %s.", got, want)
	case "refused":
		return fmt.Sprintf("The number of refused commands is %s. The goal is %s.", got, want)
	case "the run ended by":
		return fmt.Sprintf("%s. The goal is a run that ends with %q.", ends(got), want)
	case "messages per entry":
		return fmt.Sprintf("The run has %s messages for each entry. The goal is %s.", got, want)
	case "order of entries":
		return fmt.Sprintf("The order of entries is %s. The goal is %s.", got, want)
	}
	if strings.ToUpper(what) == what {
		return fmt.Sprintf("The number of %s messages is %s. The goal is %s.", what, got, want)
	}
	return fmt.Sprintf("%s The goal is %s.", sentence(what+": "+got), want)
}

func processes(n, one, many string) string {
	if n == "1" {
		return "1 process " + one
	}
	return n + " processes " + many
}

// ends tells of the end of a run, by the name of its reason.
func ends(reason string) string {
	switch reason {
	case "quiet":
		return "The run ends when nothing can happen any more (quiet)"
	case "held":
		return "The run ends because your choices end (held); choose more, or play the rest"
	case "limit":
		return "The run ends at the limit of its scenario (limit)"
	}
	return fmt.Sprintf("The run ends with %q", reason)
}

// sentence begins with a capital letter and ends with a full stop.
func sentence(text string) string {
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
