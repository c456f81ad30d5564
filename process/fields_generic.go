package process

import (
	"encoding/binary"
	"strings"
)

// Enum visits a small number that stands for one of the given names.
func Enum[E ~uint8](f *Fields, name string, p *E, names []string) {
	durable, visit := f.next()
	if !visit {
		return
	}
	switch f.mode {
	case modeEncode:
		f.buf = append(f.buf, byte(*p))
	case modeDecode:
		*p = E(f.uvarint(name, uint64(len(names)-1)))
	case modeView:
		f.show(name, RolePlain, durable, names[*p], p)
	}
}

// List visits a list of structs of any length; each visits the fields of one.
// Keep each free of captured variables and the walk does not allocate.
func List[E any](f *Fields, name string, p *[]E, each func(f *Fields, e *E)) {
	durable, visit := f.next()
	if !visit {
		return
	}
	switch f.mode {
	case modeEncode:
		f.buf = binary.AppendUvarint(f.buf, uint64(len(*p)))
		listEach(f, durable, *p, each)
	case modeDecode:
		decodeList(f, durable, name, p, each)
	case modeView:
		f.show(name, RolePlain, durable, listTexts(f, *p, each), p)
	case modeMarks:
		listEach(f, durable, *p, each)
	}
}

func listEach[E any](f *Fields, durable bool, s []E, each func(f *Fields, e *E)) {
	outer := f.inner
	f.inner, f.durable = true, durable
	for i := range s {
		each(f, &s[i])
	}
	f.inner, f.durable = outer, outer && durable
}

// decodeList stops at the first error, so that a corrupt length costs no more memory
// than the bytes that are present.
func decodeList[E any](f *Fields, durable bool, name string, p *[]E, each func(f *Fields, e *E)) {
	*p = (*p)[:0]
	for range f.length(name) {
		if f.err != nil {
			return
		}
		if len(*p) < cap(*p) {
			*p = (*p)[:len(*p)+1]
		} else {
			var zero E
			*p = append(*p, zero)
		}
		listEach(f, durable, (*p)[len(*p)-1:], each)
	}
}

// listTexts shows each element as "(field,field)".
func listTexts[E any](f *Fields, s []E, each func(f *Fields, e *E)) []string {
	texts, outer := []string{}, f.view
	for i := range s {
		var parts []string
		f.view = func(v FieldView) { parts = append(parts, v.String()) }
		each(f, &s[i])
		texts = append(texts, "("+strings.Join(parts, ",")+")")
	}
	f.view = outer
	return texts
}
