package rest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/conclave-io/conclave/api/jsonform"
)

// with returns a function that reads the body of a request, and passes it to serve.
func with[B any](serve func(r *http.Request, body *B) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		body := new(B)
		if err := readJSON(r, body); err != nil {
			return nil, err
		}
		return serve(r, body)
	}
}

// readJSON reads the body of a request, and refuses what the decoder would ignore or change: a
// request with a misspelt "wait" would wait forever.
func readJSON(r *http.Request, into any) error {
	body, err := io.ReadAll(r.Body) // receive has bounded it
	if err == nil {
		err = checkText(body)
	}
	if err != nil {
		return err
	}
	in := json.NewDecoder(bytes.NewReader(body))
	in.DisallowUnknownFields()
	err = in.Decode(into)
	if err == nil {
		if _, more := in.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more after the JSON object")
		}
	}
	var wrong refused
	var mistyped *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		return malformed("the body is empty: send an object in JSON")
	case errors.As(err, &wrong):
		return wrong
	case errors.As(err, &mistyped):
		name := fieldName(reflect.TypeOf(into).Elem(), mistyped.Field)
		return malformed("%s: must be %s, not a JSON %s", cmp.Or(name, "the body"), formOf(mistyped.Type), mistyped.Value)
	}
	if name := wrongField(body, into); name != "" {
		if _, is := errors.AsType[*time.ParseError](err); is || strings.HasPrefix(err.Error(), "Time.") {
			return malformed(`%s: not a time; write for example "2027-01-01T00:00:00Z"`, name)
		}
		return malformed("%s: %v", name, err)
	}
	return malformed("the body is not what was expected: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// fieldName returns the path of a field of a body in JSON. The decoder also names the embedded structs
// that the field is in, which have no names in JSON.
func fieldName(body reflect.Type, path string) string {
	var names []string
	for name := range strings.SplitSeq(path, ".") {
		for body.Kind() == reflect.Pointer || body.Kind() == reflect.Slice {
			body = body.Elem()
		}
		field, embedded, found := jsonField(body, name)
		if found {
			body = field.Type
		}
		if !embedded {
			names = append(names, name)
		}
	}
	return strings.Join(names, ".")
}

// jsonField returns the field of a struct that has a name in JSON, or the embedded struct of that name.
func jsonField(in reflect.Type, name string) (field reflect.StructField, embedded, found bool) {
	if in.Kind() != reflect.Struct {
		return field, false, false
	}
	for i := range in.NumField() {
		field = in.Field(i)
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if embedded = field.Anonymous && tag == ""; tag == name || embedded && field.Name == name {
			return field, embedded, true
		}
	}
	return field, false, false
}

// formOf says what a value of a type is in JSON.
func formOf(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[jsonform.Duration]():
		return `a text with a duration and its unit, such as "30s"`
	case reflect.TypeFor[[]byte]():
		return "a text in base64"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return formOf(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a text"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Int64:
		return "an integer"
	case reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("an integer from 0 to %d", uint64(1)<<t.Bits()-1)
	}
	return "a " + t.Kind().String()
}

// wrongField returns the first field of a body that alone cannot be decoded, or "".
func wrongField(body []byte, into any) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		alone, err := json.Marshal(map[string]json.RawMessage{name: fields[name]})
		if err == nil && json.Unmarshal(alone, reflect.New(reflect.TypeOf(into).Elem()).Interface()) != nil {
			return name
		}
	}
	return ""
}

// checkText reports what the JSON decoder would change without an error: text that is not UTF-8,
// which it replaces, so that two names would be one, a field that is given twice, of which it
// takes the last, and null, which it ignores.
func checkText(body []byte) error {
	if !utf8.Valid(body) {
		return malformed("the body is not valid UTF-8")
	}
	if escape := loneSurrogate(string(body)); escape != "" {
		return malformed(`%s: half of a pair of surrogates, which is no text`, escape)
	}
	return checkFields(body)
}

// loneSurrogate returns an escape that is half of a pair of surrogates, or "".
func loneSurrogate(body string) string {
	const size = len(`\uD800`)
	unit := func(at int) rune {
		if at+size > len(body) || body[at:at+2] != `\u` {
			return -1
		}
		n, err := strconv.ParseUint(body[at+2:at+size], 16, 16)
		if err != nil {
			return -1
		}
		return rune(n)
	}
	for at := 0; at < len(body)-1; at++ {
		if body[at] != '\\' {
			continue
		}
		first := unit(at)
		switch {
		case !utf16.IsSurrogate(first):
			at++ // the next byte may be a backslash
		case utf16.DecodeRune(first, unit(at+size)) == utf8.RuneError:
			return body[at : at+size]
		default:
			at += 2*size - 1
		}
	}
	return ""
}

// clipped returns the beginning of a name in quotes, or "" without a name.
func clipped(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("%.40q", name)
}

// level is an object or a list in a body.
type level struct {
	fields map[string]bool // nil in a list
	field  string          // the latest one
	value  bool            // the next token is a value
}

// checkFields reports a field that an object of a body has twice, and values that are null. The decoder
// does not distinguish upper and lower case. It reports other mistakes itself.
func checkFields(body []byte) error {
	levels := []level{{}}
	in := json.NewDecoder(bytes.NewReader(body))
	in.UseNumber()
	for {
		token, err := in.Token()
		if err != nil {
			return nil
		}
		top := &levels[len(levels)-1]
		switch {
		case token == json.Delim('}') || token == json.Delim(']'):
			levels = levels[:len(levels)-1]
			continue
		case top.fields != nil && !top.value:
			top.field, top.value = fmt.Sprint(token), true
			if top.fields[strings.ToLower(top.field)] {
				return malformed("%s: this field is given twice", clipped(top.field))
			}
			top.fields[strings.ToLower(top.field)] = true
			continue
		case token == nil:
			return malformed("%s: null: leave the field out, or give a value", cmp.Or(clipped(top.field), "the body"))
		}
		top.value = false
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{fields: make(map[string]bool)})
		case json.Delim('['):
			levels = append(levels, level{field: top.field})
		}
	}
}
