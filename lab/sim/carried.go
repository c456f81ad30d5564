package sim

import "github.com/conclave-io/conclave/process"

// observeCarried shows judges the message inside one that a carrier sends for a layer
// above, as if that layer had sent it itself. So an algorithm is watched in the same
// way whatever it runs above.
func (w *World) observeCarried(o Observation) {
	decl := w.cfg.Spec.Message(o.Message.Layer, o.Message.Type)
	if decl == nil || !carries(decl) {
		return
	}
	var inner process.Message
	if inner.DecodeRaw(o.Message.Data, w.config.N) != nil || inner.Layer <= o.Message.Layer {
		return
	}
	inner.From, inner.To = o.Message.From, o.Message.To
	o.Message = &inner
	w.observe(o)
}

func carries(decl *process.MessageSpec) bool {
	for _, use := range decl.Fields {
		if use.Carried {
			return true
		}
	}
	return false
}
