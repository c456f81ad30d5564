package server

import (
	"net/http"
	"strconv"
)

// parameters reads the query of a request, and refuses what it does not know.
type parameters struct {
	values map[string][]string
	known  map[string]bool
	err    error
}

func newParameters(r *http.Request) *parameters {
	return &parameters{values: r.URL.Query(), known: make(map[string]bool)}
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
	if err != nil && p.err == nil {
		p.err = malformed("%s: %.40q is not a number", key, text)
	}
	return uint32(n)
}

func (p *parameters) truth(key string) bool {
	text := p.text(key)
	if text == "" {
		return false
	}
	v, err := strconv.ParseBool(text)
	if err != nil && p.err == nil {
		p.err = malformed("%s: %.40q is neither true nor false", key, text)
	}
	return v
}

func (p *parameters) sessionID(key string) []byte {
	text := p.text(key)
	if text == "" {
		return nil
	}
	id, err := parsePublicID(text)
	if err != nil && p.err == nil {
		p.err = malformed("%s: %v", key, err)
	}
	return id[:]
}

// check returns the first error.
func (p *parameters) check() error {
	for key := range p.values {
		if !p.known[key] && p.err == nil {
			p.err = malformed("unknown parameter %.40q", key)
		}
	}
	return p.err
}
