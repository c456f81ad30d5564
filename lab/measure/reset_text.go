package measure

const resetsHead = `# Votes that are forgotten

In the voting of [D3] a resource has n replicas, each with a
coordinator that has one vote, and who has m votes, more than half, may enter. A
coordinator that crashes is back soon but has forgotten to whom it gave its vote. So,
the document says, mutual exclusion cannot be guaranteed. It does not say how likely it
is to be broken; the paper that it is from, by Lin, Lian, Chen and Zhang, does.

Say that a client is inside by m votes, and that each of its coordinators forgets with
probability p while it is there. The n-m others are free anyway. A second client gets
its m votes if at least m-(n-m) = 2m-n of the former have forgotten:

` + "```" + `
P = sum over k from 2m-n to m of C(m,k) p^k (1-p)^(m-k)
` + "```" + `

The simulator does just that, with the same machines that guard everything else: the
first client's requests reach m of n coordinators; each of these crashes with
probability p, and is back at once with what it has on disk; the second client asks all
n, until it is inside or time is up. *Measured* is the share of runs in which both were
inside, and beside it the standard error that the formula lets expect. The
probabilities are absurdly high, because of real ones one would see nothing.

This file is written by ` + "`make resets`" + `, as is the output of ` + "`conclave compare --resets`" + `,
and a test fails when it is not what the simulator measures.

| n | m | resets needed: 2m-n | p | P by the formula | measured | standard error |
|---|---|---|---|---|---|---|
`

const likelyHead = `
## Real numbers

With an entry that takes the time dt, and a coordinator that lives T on the average
before it forgets, p is about dt/T. This is what the formula gives:

| n | m | resets needed: 2m-n | dt | T | p | P |
|---|---|---|---|---|---|---|
`

const resetsTail = `
P is the chance for an entry during which somebody else asks, so it is a bound for any
other. To take more votes than are needed lowers it: if the client keeps those that come
after it has m, so many more must be forgotten. The least majority is the worst choice:
one forgetful coordinator is enough, or two if n is even, however many replicas there
are. The default of ` + "`majority`" + ` is therefore three quarters of n.

When it does happen, fences do not help by themselves: a coordinator learns of a fence
when the client leaves, so the two that are inside have the same one. With
` + "`mode=lease`" + ` a client has its fence on the disks of m coordinators before it enters,
and the second one's is larger.
`
