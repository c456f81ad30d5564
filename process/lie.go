package process

import "slices"

// Lie makes the effects of a step those of a Byzantine process. Instead of each message
// to each receiver it sends one of the alternatives that Spec.Lies names, or nothing. A
// Choose selects the alternative; the last one is to send nothing. A Byzantine process
// announces no decision.
//
// The hosts know which processes are Byzantine; the machines do not. A Byzantine
// process runs its machine like any other, so that there is a message to replace
// wherever the algorithm has one.
func (fx *Effects) Lie(s *Spec, c *Config, traitors []ID) {
	honest := slices.Clone(fx.list)
	fx.list = fx.list[:0]
	for i := range honest {
		switch e := &honest[i]; e.Kind {
		case EffectDecide:
		case EffectSend:
			fx.replace(s, c, traitors, *fx.Message(e))
		case EffectBroadcast:
			m := *fx.Message(e)
			for m.To = range ID(c.N) {
				if m.To != fx.self {
					fx.replace(s, c, traitors, m)
				}
			}
		default:
			fx.list = append(fx.list, *e)
		}
	}
}

// replace sends the chosen alternative in place of a message.
func (fx *Effects) replace(s *Spec, c *Config, traitors []ID, m Message) {
	alternatives := s.Lies(c, traitors, &m)
	if k := fx.Choose(len(alternatives) + 1); k < len(alternatives) {
		for _, lie := range alternatives[k] {
			fx.Send(m.To, lie)
		}
	}
}

// AnyValue is what Spec.Lies returns for a message that carries one value without
// proof: the message with each of the given number of values, and with its own.
func AnyValue(m *Message, values int) [][]Message {
	var all [][]Message
	for v := range int64(values) {
		lie := *m
		lie.Value = v
		all = append(all, []Message{lie})
	}
	if m.Value < 0 || m.Value >= int64(values) {
		all = append(all, []Message{*m})
	}
	return all
}
