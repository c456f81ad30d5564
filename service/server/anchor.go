package server

import (
	"encoding/hex"

	"github.com/conclave-io/conclave/service/registry"
)

// anchor logs again and again where the audit records end. Whoever changes the records later
// must change the log too, which is usually kept elsewhere.
func (s *Server) anchor() {
	for range ticks(s.ctx, s.cfg.AnchorEvery) {
		trail, _ := s.node.Trail()
		s.logEnd("acts", trail.Acts)
		s.logEnd("refusals", trail.Refusals)
	}
}

// logEnd logs the newest record of a chain.
func (s *Server) logEnd(name string, chain registry.Chain) {
	if n := len(chain.Records); n > 0 {
		last := chain.Records[n-1]
		s.log.Info("the audit records end here", "chain", name, "number", last.Number, "hash", hex.EncodeToString(last.Hash[:]))
	}
}
