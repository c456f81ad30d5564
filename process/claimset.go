package process

// Promises returns claims of the given properties, without conditions.
func Promises(properties ...Property) []Claim {
	claims := make([]Claim, len(properties))
	for i, p := range properties {
		claims[i].Property = p
	}
	return claims
}

// OfN returns the formula of a figure that depends on the number of processes alone.
func OfN(text string, eval func(n float64) float64) *Formula {
	return &Formula{Text: text, Eval: func(p Params) float64 { return eval(float64(p.N)) }}
}

// PerProcess returns the formula of a figure for each process.
func PerProcess(text string, each float64) *Formula {
	return OfN(text, func(n float64) float64 { return each * n })
}
