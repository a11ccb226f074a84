/* Lanes (docs/decisions/ordered-connectors.md): connectors for asynchronous calls, of which a communicator has L. A call of a sequence may begin on
 * a rank when rank 0 has granted it a lane, and rank 0 grants in the order in which it has started calls itself. So a call without a lane
 * holds nothing, on no rank. A sequence keeps its lane until another needs it; the lane changes hands when all that was granted to the
 * sequence is finished everywhere.
 *
 * A grant is of one call, also for a sequence that has a lane: who used a kept lane for the next call, which rank 0 has not started, would hold it
 * while rank 0 waits for another.
 *
 * In each call every rank sends to every other one, into the memory of the lane. Programs: S sequences, each called TIMES times by each rank.
 *   default     starts in any order, whatever that is on the other ranks; then waits for all
 *   -DGROUPS    starts L sequences in any order, waits for them, starts the others
 *   -DCROSS     rank 0 starts 0, then 1, then waits for both; rank 1 starts 1, waits for it, starts 0: two that wait for each other
 *   -DKEPT      rank 0 calls 0, waits, calls 1, waits, calls 0 again; rank 1 calls 0, waits, and starts 0 again before 1
 *
 * -DBREAK_LOCAL   each rank gives its lanes to what it starts first
 * -DBREAK_KEEP    a sequence that has a lane uses it without a grant
 * -DBREAK_EARLY   a lane changes hands when the call is finished on rank 0
 */
#ifndef N
#define N 2
#endif
#ifndef S
#define S 3
#endif
#ifndef L
#define L 1
#endif
#ifndef TIMES
#define TIMES 1
#endif
#define NONE 255
#define CALLS (S * TIMES)

typedef Counts { byte q[S] };
Counts started[N], begun[N], finished[N];
Counts granted[N];              /* of sequence s, by rank r; only rank 0's count, but with -DBREAK_LOCAL */
typedef Places { byte q[S] };
Places lane[N];                 /* of a sequence */
typedef Memory { byte holds[L * N] };
Memory memory[N];               /* of each lane and sender, what has come */
typedef Queue { byte q[CALLS]; byte first, last };
Queue queue[N];                 /* the granting rank's: what waits for a grant, in the order of starts */
byte total; /* calls finished, by all */
byte ended;

#define CALL(s, n) ((s) * TIMES + (n)) /* n from 1 on: what memory holds */

#if N == 2
#define ALL_FINISHED(s, n) (finished[0].q[s] >= (n) && finished[1].q[s] >= (n))
#else
#define ALL_FINISHED(s, n) (finished[0].q[s] >= (n) && finished[1].q[s] >= (n) && finished[2].q[s] >= (n))
#endif
#ifdef BREAK_EARLY
#define IS_IDLE(s) (finished[0].q[s] >= granted[g].q[s])
#else
#define IS_IDLE(s) ALL_FINISHED(s, granted[g].q[s])
#endif

#ifdef BREAK_LOCAL
#define GRANTER me
#else
#define GRANTER 0
#endif

/* Grants to the head of the queue: its own lane, a free one, or that of a sequence that is idle. */
proctype Granting(byte g) {
  byte s, t, l, user, seen = NONE;
  bit found;
  do
  :: atomic { queue[g].first < queue[g].last && seen != total ->
       s = queue[g].q[queue[g].first];
       found = (lane[g].q[s] != NONE);
       l = 0;
       do
       :: !found && l < L ->
         /* who has lane l? */
         user = NONE; t = 0;
         do
         :: t < S ->
           if
           :: lane[g].q[t] == l -> user = t
           :: else
           fi;
           t++
         :: else -> break
         od;
         if
         :: user == NONE -> lane[g].q[s] = l; found = 1
         :: user != NONE && IS_IDLE(user) -> lane[g].q[user] = NONE; lane[g].q[s] = l; found = 1
         :: else -> l++
         fi
       :: else -> break
       od;
       if
       :: found -> granted[g].q[s]++; queue[g].first++; seen = NONE
       :: else -> seen = total /* looks again when something has finished */
       fi;
       s = 0; t = 0; l = 0; user = 0; found = 0 }
  :: ended == 2 * N -> break
  od
}

#ifdef BREAK_KEEP
#define MAY_BEGIN(s) (granted[GRANTER].q[s] > begun[me].q[s] || (begun[me].q[s] > 0 && lane[GRANTER].q[s] != NONE))
#else
#define MAY_BEGIN(s) (granted[GRANTER].q[s] > begun[me].q[s])
#endif
/* What came before it in the sequence has been finished by all: the ordered connector in the lane sees to that. */
#define CAN_BEGIN(s) (started[me].q[s] > begun[me].q[s] && MAY_BEGIN(s) && ALL_FINISHED(s, begun[me].q[s]))

inline begin(s) {
  atomic { CAN_BEGIN(s) ->
    begun[me].q[s]++;
    p = 0;
    do
    :: p < N -> memory[p].holds[lane[GRANTER].q[s] * N + me] = CALL(s, begun[me].q[s]); p++
    :: else -> break
    od;
    at[s] = lane[GRANTER].q[s];
    p = 0 }
}

#if N == 2
#define HAS_COME(s) (begun[0].q[s] >= begun[me].q[s] && begun[1].q[s] >= begun[me].q[s])
#else
#define HAS_COME(s) (begun[0].q[s] >= begun[me].q[s] && begun[1].q[s] >= begun[me].q[s] && begun[2].q[s] >= begun[me].q[s])
#endif

inline finish(s) {
  atomic { begun[me].q[s] > finished[me].q[s] && HAS_COME(s) ->
    p = 0;
    do
    :: p < N -> assert(memory[me].holds[at[s] * N + p] == CALL(s, begun[me].q[s])); p++
    :: else -> break
    od;
    finished[me].q[s]++;
    total++;
    p = 0 }
}

#define ALL_DONE (finished[me].q[0] == TIMES && finished[me].q[1] == TIMES && (S < 3 || finished[me].q[S - 1] == TIMES))

proctype Executor(byte me) {
  byte p, at[S];
  do
  :: begin(0)
  :: begin(1)
  :: finish(0)
  :: finish(1)
#if S > 2
  :: begin(2)
  :: finish(2)
#endif
  :: ALL_DONE -> break
  od;
  ended++
}

#ifdef BREAK_LOCAL
#define ASKS true
#else
#define ASKS (me == 0)
#endif
inline start(s) {
  d_step {
    started[me].q[s]++;
    if
    :: ASKS -> queue[me].q[queue[me].last] = s; queue[me].last++
    :: else
    fi
  }
}
inline await(s, n) { finished[me].q[s] >= (n) }

proctype User(byte me) {
  byte i;
#ifdef CROSS
  if
  :: me == 0 -> start(0); start(1); await(0, 1); await(1, 1)
  :: else -> start(1); await(1, 1); start(0); await(0, 1)
  fi;
#elif defined(KEPT)
  start(0); await(0, 1);
  if
  :: me == 0 -> start(1); await(1, 1); start(0); start(1)
  :: else -> start(0); start(1); await(1, 1); start(1)
  fi;
  await(0, 2); await(1, 2);
#else
  do
  :: i < CALLS ->
    if
#ifdef GROUPS
    /* the first L sequences before the others */
    :: i == L -> await(0, 1);
      if
      :: L > 1 -> await(L - 1, 1)
      :: else
      fi
    :: else
#else
    :: true
#endif
    fi;
    if
#ifdef GROUPS
#define MAY_START(s) (started[me].q[s] < 1 && ((s) < L) == (i < L))
#else
#define MAY_START(s) (started[me].q[s] < TIMES)
#endif
    :: MAY_START(0) -> start(0)
    :: MAY_START(1) -> start(1)
#if S > 2
    :: MAY_START(2) -> start(2)
#endif
    fi;
    i++
  :: else -> break
  od;
  i = 0;
  await(0, TIMES); await(1, TIMES);
#endif
  ended++
}

init {
  byte r, s;
  atomic {
    do
    :: r < N ->
      s = 0;
      do
      :: s < S -> lane[r].q[s] = NONE; s++
      :: else -> break
      od;
      r++
    :: else -> break
    od;
    r = 0; s = 0;
    do
    :: r < N ->
      run User(r); run Executor(r);
      if
#ifndef BREAK_LOCAL
      :: r != 0
      :: r == 0 -> run Granting(r)
#else
      :: true -> run Granting(r)
#endif
      fi;
      r++
    :: else -> break
    od;
    r = 0
  }
}

ltl everybodyEnds { <> (ended == 2 * N) }
