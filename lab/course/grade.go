package course

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// free are the keys that may always be changed: they are for people, or keep the rest of
// a run as it is when one thing is changed.
var free = []string{"about", "draws"}

// Refused returns what the challenge does not allow in a text that is to solve it, one
// sentence for each key. The text must be a scenario.
func (c *Challenge) Refused(text string) ([]string, error) {
	given, err := valuesOf(c.Run)
	if err != nil {
		return nil, err
	}
	changed, err := valuesOf(text)
	if err != nil {
		return nil, err
	}
	all := maps.Clone(given)
	maps.Copy(all, changed)
	refused := []string{}
	more := map[string]int{} // items that were added to what is allowed
	for _, at := range slices.Sorted(maps.Keys(all)) {
		before, after := given[at], changed[at]
		if slices.Contains(free, at) || reflect.DeepEqual(before, after) {
			continue
		}
		i := slices.IndexFunc(c.May, func(may string) bool { return within(at, may) })
		if i < 0 {
			refused = append(refused, fmt.Sprintf("You changed %s. You may change only %s.", at, strings.Join(c.May, ", ")))
			continue
		}
		more[c.May[i]] += items(after) - items(before)
		for _, word := range c.Never {
			if (says(after, word) || within(at, c.May[i]+"."+word)) && !says(before, word) {
				refused = append(refused, fmt.Sprintf("You used %q in %s. This challenge does not allow it.", word, at))
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(more)) {
		if most, limited := c.Most[key]; limited && more[key] > most {
			refused = append(refused, fmt.Sprintf("You added %s to %s. This challenge allows %s.", counted(more[key]), key, allowed(most)))
		}
	}
	return refused, nil
}

func counted(n int) string {
	if n == 1 {
		return "1 item"
	}
	return fmt.Sprintf("%d items", n)
}

func allowed(most int) string {
	if most == 0 {
		return "no new items"
	}
	return "at most " + fmt.Sprint(most)
}

// within reports whether a path is a key or below it.
func within(path, key string) bool { return path == key || strings.HasPrefix(path, key+".") }

// valuesOf returns what a text has below its keys: links.fifo, workload.commands. Lists
// are values.
func valuesOf(text string) (map[string]any, error) {
	var top map[string]any
	if err := yaml.Unmarshal([]byte(text), &top); err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	values := map[string]any{}
	flatten(values, "", top)
	return values, nil
}

func flatten(into map[string]any, prefix string, from map[string]any) {
	for key, value := range from {
		if inner, is := value.(map[string]any); is {
			flatten(into, prefix+key+".", inner)
		} else {
			into[prefix+key] = value
		}
	}
}

// items counts the items of a list.
func items(value any) int {
	list, _ := value.([]any)
	return len(list)
}

// says reports whether a word is a key somewhere in a value, or stands in a text of it.
func says(value any, word string) bool {
	switch value := value.(type) {
	case string:
		return slices.Contains(strings.Fields(value), word)
	case []any:
		return slices.ContainsFunc(value, func(one any) bool { return says(one, word) })
	case map[string]any:
		for key, inner := range value {
			if key == word || says(inner, word) {
				return true
			}
		}
	}
	return false
}

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
