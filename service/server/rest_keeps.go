package server

import "github.com/conclave-io/conclave/service/api"

// resourceName names a lock or an election: the field that is set says which.
type resourceName struct {
	Lock     string `json:"lock,omitempty"`
	Election string `json:"election,omitempty"`
}

func nameOf(class api.Class, name string) resourceName {
	if class == api.Class_CLASS_ELECTION {
		return resourceName{Election: name}
	}
	return resourceName{Lock: name}
}

// keptJSON names a hold.
type keptJSON struct {
	resourceName
	Fence bigNumber `json:"fence"`
}

type keepsJSON []keptJSON

func (keeps keepsJSON) message() (message []*api.Kept, err error) {
	for _, k := range keeps {
		kept := &api.Kept{Name: k.Lock, Fence: uint64(k.Fence)}
		if (k.Lock == "") == (k.Election == "") {
			return nil, malformed("keeps: name either a lock or an election")
		}
		if k.Election != "" {
			kept.Class, kept.Name = api.Class_CLASS_ELECTION, k.Election
		}
		message = append(message, kept)
	}
	return message, nil
}

// dependencyJSON is a waiter, and the hold that it waits for.
type dependencyJSON struct {
	Waiter waiterJSON `json:"waiter"`
	resourceName
	Holder *holderJSON `json:"holder"`
}

func dependencyToJSON(d *api.Dependency) dependencyJSON {
	return dependencyJSON{waiterToJSON(d.GetWaiter()), nameOf(d.GetClass(), d.GetName()), holderToJSON(d.GetHolder())}
}

// waitingJSON is a waiter that keeps other holds meanwhile.
type waitingJSON struct {
	Waiter waiterJSON `json:"waiter"`
	resourceName
	Holders     []*holderJSON `json:"holders"`
	HolderCount uint32        `json:"holder_count"`
	Keeps       keepsJSON     `json:"keeps"`
}

func waitingToJSON(w *api.Waiting) waitingJSON {
	body := waitingJSON{Waiter: waiterToJSON(w.GetWaiter()), resourceName: nameOf(w.GetClass(), w.GetName()), HolderCount: w.GetHolderCount()}
	for _, h := range w.GetHolders() {
		body.Holders = append(body.Holders, holderToJSON(h))
	}
	for _, k := range w.GetKeeps() {
		body.Keeps = append(body.Keeps, keptJSON{nameOf(k.GetClass(), k.GetName()), bigNumber(k.GetFence())})
	}
	return body
}
