package rest

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/api/jsonform"
)

// refused is a reply whose code is not OK.
type refused struct{ *api.Reply }

func (r refused) Error() string { return r.GetMessage() }

// malformed is an error in a request.
func malformed(format string, args ...any) error {
	return refused{&api.Reply{Code: api.Code_CODE_INVALID, Message: fmt.Sprintf(format, args...)}}
}

// WriteError writes an error as the answer to a call.
func WriteError(w http.ResponseWriter, err error) {
	reply, is := errors.AsType[refused](err)
	if !is {
		reply = refused{&api.Reply{Code: api.CodeOf(err), Message: api.Reason(err)}}
	}
	writeJSON(w, api.MeaningOf(reply.GetCode()).HTTP, jsonform.ErrorOf(reply.Reply))
}

// writeInvalid refuses a request with a status of HTTP.
func writeInvalid(w http.ResponseWriter, status int, message string) {
	writeJSON(w, status, jsonform.Error{Code: "INVALID", Message: message})
}
