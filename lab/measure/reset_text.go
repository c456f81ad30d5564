package measure

const resetsHead = `# Votes that are forgotten

In the voting of [D3], a resource has n replicas. Each has a
coordinator with one vote, and a client with m votes, more than half, may enter. A
coordinator that crashes returns soon, but has forgotten to whom it gave its vote. So,
the document says, mutual exclusion cannot be guaranteed. It does not say how likely a violation
is; its source, a paper by Lin, Lian, Chen and Zhang, does.

Suppose that a client is inside with m votes, and that each of its coordinators forgets with
probability p while the client is there. The n-m others are free anyway. A second client gets
its m votes if at least m-(n-m) = 2m-n of the former have forgotten:

` + "```" + `
P = sum over k from 2m-n to m of C(m,k) p^k (1-p)^(m-k)
` + "```" + `

The simulator does exactly that, with the same machines as everywhere else. The
first client's requests reach m of n coordinators. Each of these crashes with
probability p, and returns at once with what it has on disk. The second client asks all
n until it is inside or time is up. *Measured* is the share of runs in which both were
inside. The *standard error* is the one that the formula predicts. The
probabilities are unrealistically high, because real ones would show nothing.

` + "`make resets`" + ` writes this file, and ` + "`conclave compare --resets`" + ` prints the same. A test fails if it differs
from what the simulator measures.

| n | m | resets needed: 2m-n | p | P by the formula | measured | standard error |
|---|---|---|---|---|---|---|
`

const likelyHead = `
## Real numbers

If an entry takes the time dt, and a coordinator forgets after the time T on average,
p is about dt/T. The formula gives:

| n | m | resets needed: 2m-n | dt | T | p | P |
|---|---|---|---|---|---|---|
`

const resetsTail = `
P is the probability for an entry during which another client asks, so it is an upper bound for all
entries. More votes than needed lower it: if the client keeps votes that arrive
after it has m, that many more must be forgotten. The smallest majority is the worst choice:
one forgetful coordinator is enough, or two if n is even, whatever the number of replicas.
The default of ` + "`majority`" + ` is therefore three quarters of n.

When it happens, fences alone do not help. A coordinator learns of a fence
when the client leaves, so the two clients that are inside have the same fence. With
` + "`mode=lease`" + `, a client has its fence on the disks of m coordinators before it enters,
and the second client's fence is larger.
`
