/* Mutual exclusion of Ricart and Agrawala (1981) for Spin: mode fresh of
 * algorithm/mutex/ricartagrawala, with the same rules, messages and fields, FIFO links,
 * and one transition per event of a process. Conclave's checker finds the same states
 * and transitions if it checks mutual exclusion alone.
 *
 * N is 2 to 4. NO_TIE_BREAK and DEAF_CLOCK are the broken variants of the same names.
 */

#ifndef N
#define N 3
#endif
#ifndef ENTRIES
#define ENTRIES 1
#endif

mtype = { IDLE, WAIT, IN, REQ, REPLY };

#define OTHERS (((1 << N) - 1) & ~(1 << _pid))
#define PEER(k) ((_pid + k) % N)
#define LINK(from, to) link[(from) * (N - 1) + (to) - ((to) > (from) -> 1 : 0)]

/* A message has a type, the number of the request, a logical time and, in a REPLY, the
 * largest fence. A link holds at most a REQ and a REPLY to the request of its receiver. */
chan link[N * (N - 1)] = [2] of { mtype, byte, byte, byte };

mtype phase[N] = IDLE;
byte inside, asked[N];

/* Variables of one transition. They are 0 between transitions, so they make no states. */
byte p, n, c, f;
mtype type;

#ifdef NO_TIE_BREAK
#define OLDER(t, i, u, j) ((t) < (u))
#else
#define OLDER(t, i, u, j) ((t) < (u) || (t) == (u) && (i) < (j))
#endif

inline enter_if_permitted() {
	if
	:: missing == 0 ->
		phase[_pid] = IN;
		fence++;
		inside++;
		assert(inside == 1)
	:: else
	fi
}

/* R1 */
inline request_entry() {
	asked[_pid]++;
	phase[_pid] = WAIT;
	clock++;
	request = clock;
	p = 0;
	do
	:: p == N -> break
	:: p < N && p != _pid -> LINK(_pid, p)!REQ, asked[_pid], request, 0; p++
	:: p < N && p == _pid -> p++
	od;
	p = 0
}

/* R2 and R3 */
inline receive_from(from) {
#ifndef DEAF_CLOCK
	if
	:: c > clock -> clock = c
	:: else
	fi;
#endif
	if
	:: type == REQ && (phase[_pid] == IN || phase[_pid] == WAIT && OLDER(request, _pid, c, from)) ->
		deferred[from] = n
	:: type == REQ && !(phase[_pid] == IN || phase[_pid] == WAIT && OLDER(request, _pid, c, from)) ->
		LINK(_pid, from)!REPLY, n, clock, fence
	:: type == REPLY ->
		if
		:: f > fence -> fence = f
		:: else
		fi;
		if
		:: phase[_pid] == WAIT && n == asked[_pid] && (missing & (1 << (from))) ->
			missing = missing & ~(1 << (from));
			enter_if_permitted()
		:: else
		fi
	fi;
	type = 0; n = 0; c = 0; f = 0
}

/* R4 */
inline release() {
	inside--;
	phase[_pid] = IDLE;
	request = 0;
	missing = OTHERS;
	p = 0;
	do
	:: p == N -> break
	:: p < N && deferred[p] != 0 -> LINK(_pid, p)!REPLY, deferred[p], clock, fence; deferred[p] = 0; p++
	:: p < N && deferred[p] == 0 -> p++
	od;
	p = 0
}

active [N] proctype process() {
	byte clock, request, fence, missing = OTHERS, deferred[N];
end:
	do
	:: d_step { phase[_pid] == IDLE && asked[_pid] < ENTRIES -> request_entry() }
	:: d_step { phase[_pid] == IN -> release() }
	:: d_step { LINK(PEER(1), _pid)?type, n, c, f -> receive_from(PEER(1)) }
#if N > 2
	:: d_step { LINK(PEER(2), _pid)?type, n, c, f -> receive_from(PEER(2)) }
#endif
#if N > 3
	:: d_step { LINK(PEER(3), _pid)?type, n, c, f -> receive_from(PEER(3)) }
#endif
	od
}
