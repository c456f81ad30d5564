package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
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
		_ = control.SetWriteDeadline(time.Now().Add(h.cfg.IOTimeout)) // fails if the client is gone
		if err != nil {
			h.server.Refused(r.Context(), err)
			WriteError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, body)
	}
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

func writeJSON(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	_ = out.Encode(body) // fails if the client is gone
}
