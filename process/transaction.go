package process

// The votes and the outcomes of a transaction, as values of Propose and Decide. A vote
// says which outcome the process can accept: a vote of Abort excludes a commit.
const (
	Abort  int64 = 0 // the vote no
	Commit int64 = 1 // the vote yes
)

// The words for the values of votes and of outcomes.
var (
	VoteNames    = []string{"no", "yes"}
	OutcomeNames = []string{"abort", "commit"}
)

// ValueWord returns the word for the value of an input or output of the algorithm, or
// "" if it has none.
func (s *Spec) ValueWord(input bool, value int64) string {
	names := OutcomeNames
	if input {
		names = VoteNames
	}
	if s.Top().Family != Transaction || value < 0 || value >= int64(len(names)) {
		return ""
	}
	return names[value]
}
