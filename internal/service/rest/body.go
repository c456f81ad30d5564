package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
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
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		return malformed("the body is empty: send an object in JSON")
	}
	var wrong refused
	var mistyped *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return wrong
	case errors.As(err, &mistyped):
		what := "the body"
		if mistyped.Field != "" {
			what = strconv.Quote(mistyped.Field)
		}
		if mistyped.Type == reflect.TypeFor[jsonform.Duration]() {
			return malformed("%s: must not be a JSON %s; write a duration with its unit, for example \"30s\"", what, mistyped.Value)
		}
		return malformed("%s: must not be a JSON %s; see docs/http.md", what, mistyped.Value)
	}
	return malformed("the body is not what was expected: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// checkText reports what the JSON decoder would change without an error: text that is not UTF-8,
// which it replaces, so that two names would be one, and a field that is given twice, of which it
// takes the last.
func checkText(body []byte) error {
	if !utf8.Valid(body) {
		return malformed("the body is not valid UTF-8")
	}
	if escape := loneSurrogate(string(body)); escape != "" {
		return malformed(`%s: half of a pair of surrogates, which is no text`, escape)
	}
	if key := repeatedField(body); key != "" {
		return malformed("%.40q: this field is given twice", key)
	}
	return nil
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

// repeatedField returns a field that an object of a body has twice, or "". The decoder does not
// distinguish upper and lower case. It reports other mistakes itself.
func repeatedField(body []byte) string {
	type level struct {
		fields map[string]bool // nil in a list
		value  bool            // the next token is a value
	}
	var levels []level
	in := json.NewDecoder(strings.NewReader(string(body)))
	in.UseNumber()
	for {
		token, err := in.Token()
		if err != nil {
			return ""
		}
		if delimiter, is := token.(json.Delim); is && (delimiter == '}' || delimiter == ']') {
			levels = levels[:len(levels)-1]
			continue
		}
		if n := len(levels); n > 0 && levels[n-1].fields != nil {
			top := &levels[n-1]
			if !top.value {
				key := fmt.Sprint(token)
				if top.fields[strings.ToLower(key)] {
					return key
				}
				top.fields[strings.ToLower(key)], top.value = true, true
				continue
			}
			top.value = false
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{fields: make(map[string]bool)})
		case json.Delim('['):
			levels = append(levels, level{})
		}
	}
}
