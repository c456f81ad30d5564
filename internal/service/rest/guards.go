package rest

import (
	"net/http"

	"github.com/conclave-io/conclave/api"
	"github.com/conclave-io/conclave/api/jsonform"
)

// getView serves GET /v1/view.
func (h *Handler) getView(r *http.Request) (any, error) {
	p := newParameters(r)
	req := &api.ViewRequest{Stale: p.truth("stale"), Homes: p.truth("homes")}
	return answered(r, p, h.server.View, req, jsonform.ViewOf)
}

type guardsBody struct {
	Prefix    string            `json:"prefix"`
	Algorithm string            `json:"algorithm"`
	Options   string            `json:"options"`
	Remove    bool              `json:"remove"`
	Wait      jsonform.Duration `json:"wait"`
	Force     bool              `json:"force"`
	Reason    string            `json:"reason"`
}

// postGuards serves POST /v1/guards.
func (h *Handler) postGuards(r *http.Request, body *guardsBody) (any, error) {
	if body.Remove == (body.Algorithm != "") {
		return nil, malformed("algorithm: name one, or agreement, or set remove")
	}
	req := &api.SetGuardRequest{
		Prefix: body.Prefix, Options: body.Options, Remove: body.Remove, WaitNs: int64(body.Wait), Force: body.Force, Reason: body.Reason,
	}
	if body.Algorithm != jsonform.Agreement {
		req.Algorithm = body.Algorithm
	}
	_, err := h.server.SetGuard(r.Context(), req)
	return body, err
}

// postElect serves POST /v1/view/elect.
func (h *Handler) postElect(r *http.Request) (any, error) {
	return answered(r, newParameters(r), h.server.CallElection, new(api.CallElectionRequest), func(answer *api.CallElectionResponse) any {
		return struct {
			Members []uint64 `json:"members"`
		}{answer.GetMembers()}
	})
}

// noWatch is the name in JSON for the absence of a watch stack.
const noWatch = "none"

type watchBody struct {
	Stack   string `json:"stack"`
	Options string `json:"options"`
	Reason  string `json:"reason"`
}

// postWatch serves POST /v1/view/watch.
func (h *Handler) postWatch(r *http.Request, body *watchBody) (any, error) {
	if body.Stack == "" {
		return nil, malformed("stack: name a detector and an election, such as swim+bully, or none")
	}
	req := &api.SetGuardRequest{Watch: true, Options: body.Options, Reason: body.Reason}
	if body.Stack != noWatch {
		req.Algorithm = body.Stack
	}
	_, err := h.server.SetGuard(r.Context(), req)
	return body, err
}

// getCut serves GET /v1/cut.
func (h *Handler) getCut(r *http.Request) (any, error) {
	q := newParameters(r)
	req := &api.CutRequest{Prefix: q.text("prefix")}
	return answered(r, q, h.server.Cut, req, jsonform.CutOf)
}

// actions are the changes of the level, by name.
var actions = map[string]api.UpgradeRequest_Action{
	"finish": api.UpgradeRequest_ACTION_FINISH, "hold": api.UpgradeRequest_ACTION_HOLD,
	"release": api.UpgradeRequest_ACTION_RELEASE, "lower": api.UpgradeRequest_ACTION_LOWER,
}

func (h *Handler) getUpgrade(r *http.Request) (any, error) {
	return answered(r, newParameters(r), h.server.Upgrade, &api.UpgradeRequest{}, jsonform.UpgradeOf)
}

type upgradeBody struct {
	Action string `json:"action"`
	Level  uint32 `json:"level"`
}

func (h *Handler) postUpgrade(r *http.Request, body *upgradeBody) (any, error) {
	action, known := actions[body.Action]
	if !known {
		return nil, malformed("action: %.40q: must be finish, hold, release or lower", body.Action)
	}
	answer, err := h.server.Upgrade(r.Context(), &api.UpgradeRequest{Action: action, Level: body.Level})
	if err != nil {
		return nil, err
	}
	return jsonform.UpgradeOf(answer), nil
}

func (h *Handler) getSettings(r *http.Request) (any, error) {
	return answered(r, newParameters(r), h.server.Settings, &api.SettingsRequest{}, jsonform.SettingsOf)
}

type settingBody struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// postSettings serves POST /v1/settings.
func (h *Handler) postSettings(r *http.Request, body *settingBody) (any, error) {
	if body.Name == "" {
		return nil, malformed("name: missing: must name a setting, such as names")
	}
	answer, err := h.server.Settings(r.Context(), &api.SettingsRequest{Name: body.Name, Value: body.Value})
	if err != nil {
		return nil, err
	}
	return jsonform.SettingsOf(answer), nil
}
