package rest

import (
	"fmt"
	"html/template"
	"mime"
	"net/http"
	"strings"
)

var front = template.Must(template.New("front").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Conclave, server {{.Server}}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:50em;margin:2em auto;padding:0 1em}code{white-space:pre-wrap}td{padding-right:1em;vertical-align:top}</style>
<h1>Conclave</h1>
<p>Server {{.Server}} of cluster <code>{{.Cluster}}</code>, version {{.Version}}. Programs use gRPC on this port; here is what there is for curl and browsers.</p>
<table>
<tr><td><a href="/v1/status">GET /v1/status</a><td>this server, and the cluster as it sees it
<tr><td><a href="/v1/members">GET /v1/members</a><td>the servers as the leader sees them
<tr><td>POST /v1/leader<td><code>{"to":3}</code> makes a server the leader
<tr><td><a href="/v1/locks">GET /v1/locks</a><td>who holds and who waits; <code>?prefix= after= limit= waiters= order=queue|age stale=</code>
<tr><td><a href="/v1/elections">GET /v1/elections</a><td>the same for elections
<tr><td>GET /v1/elections/{name}<td>who leads
<tr><td>GET /v1/elections/{name}/watch<td>who leads, now and from now on (server-sent events)
<tr><td>GET /v1/locks/{name}/why, /v1/elections/{name}/why<td>who holds, who waits in which order, and how the last holds ended
<tr><td><a href="/v1/waits">GET /v1/waits</a><td>who waits while keeping something; <code>?limit= stale=</code>
<tr><td><a href="/v1/watch?status=1s">GET /v1/watch</a><td>the servers and all that changes in one stream; <code>?status=1s&amp;locks=PREFIX&amp;elections=PREFIX</code> (server-sent events)
<tr><td><a href="/v1/watch/locks">GET /v1/watch/locks</a>, <a href="/v1/watch/elections">/v1/watch/elections</a><td>all that changes under <code>?prefix=</code> (server-sent events)
<tr><td><a href="/v1/sessions">GET /v1/sessions</a><td>live sessions; <code>?after= limit= stale=</code>
<tr><td>POST /v1/open<td><code>{"ttl":"10s"}</code> opens a session
<tr><td>POST /v1/sessions/{id}/end<td><code>{"reason":"..."}</code> asks the owner of a session to end it
<tr><td>POST /v1/renew, /v1/close<td><code>{"session":"..."}</code>
<tr><td>POST /v1/acquire<td><code>{"session":"...","name":"...","wait":"5s"}</code> or <code>"try":true</code>; <code>"limit":3</code> for a semaphore, <code>"shared":true</code> for readers
<tr><td>POST /v1/release<td><code>{"session":"...","hold":"..."}</code>
<tr><td>POST /v1/campaign<td><code>{"session":"...","name":"...","value":"..."}</code>; <code>"priority":1,"patience":"30s"</code>
<tr><td>POST /v1/update<td><code>{"session":"...","hold":"...","value":"..."}</code>
<tr><td>POST /v1/resign<td><code>{"session":"...","hold":"..."}</code>
<tr><td>POST /v1/transfer<td><code>{"session":"...","hold":"...","to":"value of a candidate"}</code>
<tr><td>POST /v1/revoke<td><code>{"session":"...","lock":"...","reason":"..."}</code> or <code>"election"</code>: asks the holder to leave
<tr><td><a href="/v1/access/whoami">GET /v1/access/whoami</a><td>who you are to the servers
<tr><td><a href="/v1/access">GET /v1/access</a>, POST /v1/access<td>the rules of access; <code>{"edits":[{"put_binding":{"who":"cert:bob","roles":["viewer"]}}]}</code>
<tr><td>GET /v1/access/check<td>whether you may do something, and why; <code>?verb=hold&amp;lock=NAME</code>
<tr><td><a href="/v1/settings">GET /v1/settings</a>, POST /v1/settings<td>the settings of the cluster; <code>{"name":"names","value":"nfc"}</code>
<tr><td><a href="/v1/upgrade">GET /v1/upgrade</a>, POST /v1/upgrade<td>the level of the formats; <code>{"action":"hold"}</code>, or <code>"finish"</code>, <code>"release"</code>, <code>"lower"</code>
<tr><td><a href="/healthz">/healthz</a>, <a href="/readyz">/readyz</a>, <a href="/metrics">/metrics</a><td>for what watches over servers
</table>
<p><code>session</code> is the secret that <code>/v1/open</code> returned, <code>session_id</code> the public id of a session, with which nobody can act in it. Fences and holds are numbers of 64 bits, written as strings: as numbers, many readers of JSON would round them. An error has the body <code>{"code":"NOT_HELD","message":"..."}</code>.</p>
</html>
`))

// frontPage serves the page to browsers, and the list of calls to others.
func (h *Handler) frontPage(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept")
	if h.ForPage(r) {
		h.cfg.Page.ServeHTTP(w, r)
		return
	}
	h.listCalls(w, r)
}

// ForPage reports whether a request that matches no call is for a file of the page.
func (h *Handler) ForPage(r *http.Request) bool {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch {
	case h.cfg.Page == nil || !reads || strings.HasPrefix(r.URL.Path, "/v1/"):
		return false
	case r.URL.Path == "/":
		return acceptsHTML(r)
	}
	return true
}

// acceptsHTML reports whether a client explicitly accepts HTML, as browsers do.
// A client that accepts anything, like curl, is a program.
func acceptsHTML(r *http.Request) bool {
	for entry := range strings.SplitSeq(r.Header.Get("Accept"), ",") {
		if kind, _, err := mime.ParseMediaType(entry); err == nil && kind == "text/html" {
			return true
		}
	}
	return false
}

// elsewhere serves the files of the page, and refuses unknown paths.
func (h *Handler) elsewhere(w http.ResponseWriter, r *http.Request) {
	if h.ForPage(r) {
		h.cfg.Page.ServeHTTP(w, r)
		return
	}
	writeInvalid(w, http.StatusNotFound, fmt.Sprintf("there is no %s %s here: GET /v1/ lists what there is", r.Method, r.URL.Path))
}

// listCalls lists the calls of this server.
func (h *Handler) listCalls(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_ = front.Execute(w, map[string]any{"Server": h.cfg.ID, "Cluster": h.cfg.Cluster, "Version": h.cfg.Version})
}
