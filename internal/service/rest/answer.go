package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/conclave-io/conclave/api"
)

// maxBody bounds the body of a request: in JSON, each byte of a value of 64 KiB may take six
// bytes.
const maxBody = 512 << 10

// timed makes a handler from a function that returns the body of its response.
func (h *Handler) timed(method string, serve func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer h.server.Called("http_"+method, time.Now())
		control := http.NewResponseController(w)
		var body any
		err := h.receive(control, w, r)
		if err == nil {
			body, err = serve(r)
		}
		if err == nil && gone(r.Context()) && takeBack(body) {
			err = refused{&api.Reply{Code: api.Code_CODE_UNAVAILABLE, Message: "granted after the caller had closed the connection; the hold is being released"}}
		}
		_ = control.SetWriteDeadline(time.Now().Add(h.cfg.IOTimeout)) // fails if the client is gone
		if err != nil {
			h.server.Refused(r.Context(), err)
			WriteError(w, err)
			return
		}
		if !writeJSON(w, http.StatusOK, body) || control.Flush() != nil {
			takeBack(body)
		}
	}
}

// revocable is the body of an answer that is of no use unless the caller gets it.
type revocable interface{ takeBack() }

// takeBack takes back what an answer gives to its caller, and reports whether it gives anything.
func takeBack(body any) bool {
	it, is := body.(revocable)
	if is {
		it.takeBack()
	}
	return is
}

// receive reads the body of a request. The time limit applies only until the body has
// arrived: serving the request may take longer.
func (h *Handler) receive(control *http.ResponseController, w http.ResponseWriter, r *http.Request) error {
	if err := control.SetReadDeadline(time.Now().Add(h.cfg.IOTimeout)); err != nil {
		return malformed("the connection is gone")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return malformed("the body has over %d bytes", maxBody)
	case err != nil:
		return malformed("the body did not arrive within %v", h.cfg.IOTimeout)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return control.SetReadDeadline(time.Time{})
}

// writeJSON writes an answer, and reports whether the connection is still there. The length tells the
// caller whether an answer is complete.
func writeJSON(w http.ResponseWriter, code int, body any) bool {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	_ = out.Encode(body) // never fails: the bodies are forms
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(text.Len()))
	w.WriteHeader(code)
	_, err := w.Write(text.Bytes())
	return err == nil
}
