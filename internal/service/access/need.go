package access

// Need is what a caller needs for a call if the cluster has rules.
type Need struct {
	Kind NeedKind
	Verb Verb
}

// NeedKind says which proof a call needs, and where its verb is checked.
type NeedKind int

const (
	// NeedUnmapped is the need of an unknown call: nobody may make it.
	NeedUnmapped NeedKind = iota
	// NeedNothing: not even a proof of identity.
	NeedNothing
	// NeedProof: a proof of identity.
	NeedProof
	// NeedProofUnlessPage: nothing for the files of the web page, which contain nothing about the
	// cluster: a browser cannot send a token before it has the page. Otherwise a proof.
	NeedProofUnlessPage
	// NeedByName: a proof, and the verb, which is checked later: by the registry when it applies the
	// log, or for each name in an answer.
	NeedByName
	// NeedOnCluster: a proof, and the verb.
	NeedOnCluster
)

// The needs that several calls have.
var (
	Anybody   = Need{Kind: NeedNothing}
	AnyProven = Need{Kind: NeedProof}
	Reading   = ByName(Read)
	// InSession is for requests in a session of the caller, about which the registry decides.
	InSession = ByName(Hold)
	// OfMembers is for changes of the members, which are decided, and recorded, where the log
	// is applied.
	OfMembers = ByName(Members)
)

// ByName returns the need of a call whose verb is checked for each name.
func ByName(verb Verb) Need { return Need{NeedByName, verb} }

// OnCluster returns the need of a call whose verb is checked before the call.
func OnCluster(verb Verb) Need { return Need{NeedOnCluster, verb} }
