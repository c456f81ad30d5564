package rest

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/api/jsonform"
)

// parameters reads the query of a request, and refuses unknown parameters.
type parameters struct {
	values map[string][]string
	known  map[string]bool
	err    error
}

func newParameters(r *http.Request) *parameters {
	values, err := url.ParseQuery(r.URL.RawQuery)
	p := &parameters{values: values, known: make(map[string]bool)}
	if err != nil {
		p.fail("query: %.100q: %v", r.URL.RawQuery, err)
	}
	for key, given := range values {
		switch {
		case len(given) > 1:
			p.fail("%.40q: this parameter is given %d times", key, len(given))
		case !utf8.ValidString(given[0]):
			p.fail("%.40q: %.40q: is not valid UTF-8", key, given[0])
		}
	}
	return p
}

func (p *parameters) text(key string) string {
	p.known[key] = true
	if v := p.values[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

func (p *parameters) number(key string) uint32 {
	text := p.text(key)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		p.fail("%s: %.40q is not a number", key, text)
	}
	return uint32(n)
}

func (p *parameters) truth(key string) bool {
	text := p.text(key)
	if text == "" {
		return false
	}
	v, err := strconv.ParseBool(text)
	if err != nil {
		p.fail("%s: %.40q: must be true or false", key, text)
	}
	return v
}

// orders are the orders of lists, by name.
var orders = map[string]api.Order{"": api.Order_ORDER_NAME, "name": api.Order_ORDER_NAME, "queue": api.Order_ORDER_QUEUE, "age": api.Order_ORDER_AGE}

func (p *parameters) order(key string) api.Order {
	order, known := orders[p.text(key)]
	if !known {
		p.fail("%s: %.40q: must be name, queue or age", key, p.text(key))
	}
	return order
}

// duration returns a duration within bounds, or 0 if it is not given.
func (p *parameters) duration(key string, least, most time.Duration) time.Duration {
	text := p.text(key)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		p.fail("%s: %.40q: must be a duration between %v and %v", key, text, least, most)
	}
	return d
}

// given reports whether a parameter is present, even if empty.
func (p *parameters) given(key string) bool {
	p.known[key] = true
	return len(p.values[key]) > 0
}

// fail notes an error, if it is the first one.
func (p *parameters) fail(format string, args ...any) {
	if p.err == nil {
		p.err = malformed(format, args...)
	}
}

func (p *parameters) sessionID(key string) []byte {
	text := p.text(key)
	if text == "" {
		return nil
	}
	var id jsonform.SessionID
	if err := id.UnmarshalText([]byte(text)); err != nil {
		p.fail("%s: %v", key, err)
	}
	return id
}

// answered checks the parameters of a call, carries out a request, and translates the answer.
func answered[Q, A, F any](r *http.Request, q *parameters, call func(context.Context, Q) (A, error), req Q, form func(A) F) (any, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	answer, err := call(r.Context(), req)
	if err != nil {
		return nil, err
	}
	return form(answer), nil
}

// check returns the first error.
func (p *parameters) check() error {
	for key := range p.values {
		if !p.known[key] {
			p.fail("unknown parameter %.40q", key)
		}
	}
	return p.err
}
