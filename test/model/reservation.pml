/* Reservation at submission (runtime/rank/reservation.cpp): two ranks submit the same collectives, each by
 * two threads, in opposite orders. An invocation needs slots of the arena and a request, and has either both
 * or nothing; a submission for which something is missing is refused, says who holds it, and is made again.
 * An invocation can run once both ranks have admitted it. Its request comes back when it is finished and
 * taken, its slots when both ranks have finished it.
 *
 * There is room for three of the four invocations at a time: with less the two programs, whose orders differ by
 * more then, make a cycle themselves (docs/progress.md).
 *
 * -DBREAK_HOLD     the slots are kept while the submission waits for a request, and the other way round
 * -DBREAK_KEEP     a submission that is refused keeps the slots that it has found
 * -DBREAK_EARLY    slots come back when this rank has finished, whatever the other one reads
 * -DBREAK_RECLAIM  the slots of what has ended do not come back
 */
#define RANKS 2
#define THREADS 2
#define N 4 /* collectives: 0 and 1 are submitted by thread 0, 2 and 3 by thread 1 */
#define SLOTS 5
#define REQUESTS 3
#define SIZE(i) (1 + (i & 1))

#define AT(r, i) ((r) * N + (i))
#define PEER(r) (1 - (r))

byte slots[RANKS] = SLOTS;
byte requests[RANKS] = REQUESTS;
bit admitted[RANKS * N], finished[RANKS * N], taken[RANKS * N];
byte holds[RANKS * N];   /* slots */
bit hasRequest[RANKS * N];
byte ended[RANKS];

#define MAY_COME_BACK(r, i)                                                                       \
  (holds[AT(r, i)] != 0 && finished[AT(r, i)] && finished[AT(PEER(r), i)])

#ifdef BREAK_RECLAIM
#define SOMETHING_COMES_BACK(r) false
#else
#define SOMETHING_COMES_BACK(r)                                                                   \
  (MAY_COME_BACK(r, 0) || MAY_COME_BACK(r, 1) || MAY_COME_BACK(r, 2) || MAY_COME_BACK(r, 3))
#endif

/* A submission is one step: the lock of the admission. */
inline reclaim() { /* Admission::reclaimAll, Admission::canReclaim, Admission::reclaim */
  for (j : 0 .. N - 1) {
    if
    :: MAY_COME_BACK(r, j) ->
      slots[r] = slots[r] + holds[AT(r, j)];
      holds[AT(r, j)] = 0
    :: else
    fi
  };
  j = 0
}

/* What is there and what is held are all that there is, and nobody holds in part. */
#define HELD_SLOTS(r) (holds[AT(r, 0)] + holds[AT(r, 1)] + holds[AT(r, 2)] + holds[AT(r, 3)])
#define HELD_REQUESTS(r)                                                                          \
  (hasRequest[AT(r, 0)] + hasRequest[AT(r, 1)] + hasRequest[AT(r, 2)] + hasRequest[AT(r, 3)])
inline checkBooks() { /* none: assertions */
  assert(slots[r] + HELD_SLOTS(r) == SLOTS);
  assert(requests[r] + HELD_REQUESTS(r) == REQUESTS)
}

inline takeAll() { /* Admission::reserve, Admission::reserveMemory, RequestTable::open */
  slots[r] = slots[r] - SIZE(i);
  holds[AT(r, i)] = SIZE(i);
  requests[r]--;
  hasRequest[AT(r, i)] = 1;
  admitted[AT(r, i)] = 1
}

#if defined(BREAK_HOLD)
/* Thread 0 begins with the slots, thread 1 with the request, and each waits for the other with what it has. */
inline submit() { /* none: -DBREAK_HOLD */
  if
  :: thread == 0 ->
    atomic { /* none: -DBREAK_HOLD */ slots[r] >= SIZE(i) -> slots[r] = slots[r] - SIZE(i); holds[AT(r, i)] = SIZE(i) };
    atomic { /* none: -DBREAK_HOLD */ requests[r] != 0 -> requests[r]--; hasRequest[AT(r, i)] = 1; admitted[AT(r, i)] = 1 }
  :: else ->
    atomic { /* none: -DBREAK_HOLD */ requests[r] != 0 -> requests[r]--; hasRequest[AT(r, i)] = 1 };
    atomic { /* none: -DBREAK_HOLD */ slots[r] >= SIZE(i) -> slots[r] = slots[r] - SIZE(i); holds[AT(r, i)] = SIZE(i); admitted[AT(r, i)] = 1 }
  fi
}
#else
inline submit() { /* Admission::submit */
  do
  :: atomic { /* Admission::reserve, Admission::again */
      !admitted[AT(r, i)] ->
#ifndef BREAK_RECLAIM
      reclaim();
#endif
      if
      :: slots[r] >= SIZE(i) && requests[r] != 0 ->
        takeAll()
      :: else ->
        /* Again: whoever holds what is missing is named. */
        assert(HELD_SLOTS(r) != 0 || HELD_REQUESTS(r) != 0);
#ifdef BREAK_KEEP
        if
        :: slots[r] >= SIZE(i) && holds[AT(r, i)] == 0 ->
          slots[r] = slots[r] - SIZE(i);
          holds[AT(r, i)] = SIZE(i)
        :: else
        fi
#else
        assert(holds[AT(r, i)] == 0 && !hasRequest[AT(r, i)])
#endif
      fi;
      checkBooks()
    };
    /* Calls again when something has come back, or could. */
    atomic { /* the program */
      if
      :: admitted[AT(r, i)]
      :: !admitted[AT(r, i)] ->
        SOMETHING_COMES_BACK(r) || (slots[r] >= SIZE(i) && requests[r] != 0)
      fi
    }
  :: admitted[AT(r, i)] -> break
  od
}
#endif

/* A thread of a program: submits its collectives, rank 1 the other way round, then takes the results. */
proctype Program(byte r; byte thread) { /* the program */
  byte i, j, n;
  for (n : 0 .. 1) {
    i = 2 * thread + (r == 0 -> n : 1 - n);
    submit()
  };
  for (n : 0 .. 1) {
    i = 2 * thread + n;
    atomic { /* RequestTable::take */
      finished[AT(r, i)] && hasRequest[AT(r, i)] ->
      taken[AT(r, i)] = 1;
      hasRequest[AT(r, i)] = 0;
      requests[r]++
    }
  };
  atomic { /* the program */ i = 0; n = 0; ended[r]++ }
}

/* The executors of a rank: whatever can run runs, in any order, with the other rank's slots. */
proctype Executor(byte r) { /* Executor::runUntil */
  byte i, j;
  do
  :: ended[r] == THREADS -> break
#define RUN(k)                                                                                    \
  :: atomic { /* Executor::visitClaimed */ \
      admitted[AT(r, k)] && admitted[AT(PEER(r), k)] && !finished[AT(r, k)] ->                     \
      assert(holds[AT(PEER(r), k)] != 0); /* reads them */                                        \
      finished[AT(r, k)] = 1;                                                                     \
      EARLY(k)                                                                                    \
    }
#ifdef BREAK_EARLY
#define EARLY(k) slots[r] = slots[r] + holds[AT(r, k)]; holds[AT(r, k)] = 0
#else
#define EARLY(k) skip
#endif
  RUN(0)
  RUN(1)
  RUN(2)
  RUN(3)
  od
}

init {
  atomic {
    run Program(0, 0);
    run Program(0, 1);
    run Program(1, 0);
    run Program(1, 1);
    run Executor(0);
    run Executor(1)
  }
}

/* Under weak fairness every submission is admitted in the end, and everything comes back. */
ltl everybodyEnds { <> (ended[0] == THREADS && ended[1] == THREADS) }
