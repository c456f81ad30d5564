package sim

import "math/bits"

// random is splitmix64: one word of state, the same numbers on every machine.
// The order in which a run draws from its streams is part of the meaning of a
// seed, so a change of it changes every recorded trace.
type random struct{ state uint64 }

// The streams of a run. Draws from one do not affect the others: another workload meets
// the same delays.
const (
	streamLinks = iota + 1
	streamTimers
	streamChoices
	streamClients
	streamClocks
	streamDisk
)

func newRandom(seed uint64, stream uint64) random {
	r := random{state: seed ^ stream*0xd1342543de82ef95}
	r.next()
	return r
}

func (r *random) next() uint64 {
	r.state += 0x9e3779b97f4a7c15
	z := r.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below returns a number from 0 to n-1. The bias of at most n/2^64 is far below what
// any run could show.
func (r *random) below(n uint64) uint64 {
	hi, _ := bits.Mul64(r.next(), n)
	return hi
}

// chance reports whether an event of the given probability happens. Nothing is drawn
// for probability 0.
func (r *random) chance(p probability) bool {
	return p > 0 && r.next()>>probabilityShift < uint64(p)
}

// probability is a number from 0 to 1 in units of 2^-53, which every float64
// between them is exactly converted to, or from, on every machine.
type probability uint64

const (
	probabilityBits  = 53
	probabilityShift = 64 - probabilityBits
)

func makeProbability(p float64) probability {
	return probability(p * (1 << probabilityBits))
}

// exponential returns a number with the given mean and exponential distribution,
// by integers alone: floating-point logarithms differ between machines.
func (r *random) exponential(mean uint64) uint64 {
	const ln2 = 2977044472 // ln 2 in units of 2^-32
	log := negativeLog2(r.next() | 1)
	hi, lo := bits.Mul64(log, ln2)
	nats := hi<<32 | lo>>32 // -ln(u) in units of 2^-32
	hi, lo = bits.Mul64(nats, mean)
	return hi<<32 | lo>>32
}

// negativeLog2 returns -log2(x / 2^64) in units of 2^-32, for x > 0.
func negativeLog2(x uint64) uint64 {
	zeros := uint64(bits.LeadingZeros64(x))
	fraction := x << zeros << 1 // the bits after the leading one
	index, rest := fraction>>56, fraction<<8>>32
	low, high := logTable[index], logTable[index+1]
	log := low + (high-low)*rest>>32
	return (zeros+1)<<32 - log
}

// logTable holds log2(1 + i/256) in units of 2^-32.
var logTable = makeLogTable()

func makeLogTable() (table [257]uint64) {
	for i := range uint64(256) {
		table[i] = fractionLog2(1<<32 + i<<24)
	}
	table[256] = 1 << 32
	return table
}

// fractionLog2 returns log2 of a number from 1 to 2 in units of 2^-32, bit by
// bit: squaring doubles the logarithm.
func fractionLog2(x uint64) uint64 {
	log := uint64(0)
	for range 32 {
		hi, lo := bits.Mul64(x, x)
		x = hi<<32 | lo>>32
		log <<= 1
		if x >= 2<<32 {
			x >>= 1
			log |= 1
		}
	}
	return log
}

// key restarts a random stream for one draw of a keyed run. A draw for a message
// depends on its link and on the number of earlier messages on that link, a draw for a
// timer depends on that timer, and so on. So a change of one thing in a run changes
// only its consequences. The key must not be 0.
func (w *World) key(dice *random, stream, key uint64) {
	if !w.cfg.Keyed {
		return
	}
	counted := random{state: stream<<61 ^ key}
	drawKey := counted.next() | 1
	n := w.drawn.get(drawKey) + 1
	w.drawn.set(drawKey, n, nil)
	*dice = newRandom(w.cfg.Seed, stream)
	dice.state ^= drawKey
	dice.next()
	dice.state += uint64(n)
	dice.next()
}
