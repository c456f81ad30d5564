package course

import (
	"fmt"
	"maps"
	"reflect"
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
