/* Announce cells that go from one collective to another (runtime/invocation/announce_cells.h): two ranks
 * or three, one id X that each submits the same number of times and deregisters when it likes, and
 * another id that takes what X has left. A rank has one cell, so giving it back and taking it for the
 * other id is one step.
 *
 * -DRANKS=n          so many ranks; 2 unless said otherwise
 * -DTIMES=n          invocations of X on each rank; 2 unless said otherwise
 * -DSTEPS=n          at most so many steps at a time towards giving the cell back; 3 unless said otherwise
 * -DBREAK_RECHECK    who leaves does not look again after it has said so
 * -DBREAK_READY      who rests leaves when the others rest, without being seen ready by them
 * -DBREAK_FORGET     who comes back uses the cells that it knew before
 * -DBREAK_COUNT      who comes back counts from 0, whatever the others count from
 * -DBREAK_LEAVING    who comes back takes those for gone who are about to leave
 */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef TIMES
#define TIMES 2
#endif

#ifndef STEPS
#define STEPS 3
#endif

#define ACTIVE 0
#define RESTING 1
#define READY 2
#define LEAVING 3
mtype:owner = { nobody, x, other };
mtype:owner owner[RANKS]; /* of the rank's cell */
byte life[RANKS];
byte ended[RANKS];   /* in the cell: invocations that its rank has finished */
byte first[RANKS];   /* in the cell: with which invocation who knows nothing begins to count */
#define UNKNOWN 255
byte counted[RANKS]; /* private: invocations that the rank has submitted, as far as it knows */
bit knows[RANKS];    /* private: whether it knows, which it does not once its cell has gone */
byte real[RANKS];    /* how many there were, for the assertions */
byte settled[RANKS]; /* private: all ranks are through with those below */
bit isOver[RANKS];

#define HAS(r, phase) (owner[r] == x && life[r] == phase)
#define RESTS(r, n) ((HAS(r, RESTING) || HAS(r, READY)) && counted[r] == n)
#ifdef BREAK_READY
#define THROUGH(r, n) !HAS(r, ACTIVE)
#else
#define THROUGH(r, n)                                                                             \
  (owner[r] != x || life[r] == LEAVING || (life[r] == READY && counted[r] == n))
#endif

/* good: whether the condition, of p, holds for all others. */
#define LOOK_AT_ALL(condition)                                                                    \
  good = 1;                                                                                       \
  do                                                                                              \
  :: p < RANKS ->                                                                                 \
    if                                                                                            \
    :: p == self                                                                                  \
    :: else ->                                                                                    \
      if                                                                                          \
      :: condition                                                                                \
      :: else -> good = 0                                                                         \
      fi                                                                                          \
    fi;                                                                                           \
    p++                                                                                           \
  :: else -> break                                                                                \
  od;                                                                                             \
  p = 0

/* One step of AnnounceCells::step, with the lock of the rank's admission; each look at a peer is a
 * step of its own. */
inline advance() { /* AnnounceCells::step */
  if
  :: HAS(self, ACTIVE) ->
    /* Memory is reclaimed when all that were found have finished as much. */
    LOOK_AT_ALL(ended[p] >= counted[self]);
    if
    :: good -> life[self] = RESTING
    :: else
    fi
  :: else
  fi;
  if
  :: HAS(self, RESTING) ->
    good = (settled[self] == counted[self]);
    if
    :: !good -> LOOK_AT_ALL(RESTS(p, counted[self]))
    :: else
    fi;
    if
    :: good ->
      settled[self] = counted[self];
#ifndef BREAK_FORGET
      known = 0;
#endif
      d_step { /* AnnounceCell::enter */ first[self] = counted[self]; life[self] = READY }
    :: else
    fi
  :: else
  fi;
  if
  :: HAS(self, READY) ->
    LOOK_AT_ALL(THROUGH(p, counted[self]));
    if
    :: good ->
#ifndef BREAK_RECHECK
      life[self] = LEAVING;
      LOOK_AT_ALL(THROUGH(p, counted[self]));
#endif
      if
      :: good ->
        d_step { /* AnnounceOwner::giveBack, AnnounceOwner::take */ owner[self] = other; life[self] = ACTIVE; knows[self] = 0; counted[self] = 0; settled[self] = 0 }
      :: else -> life[self] = READY
      fi
    :: else
    fi
  :: else
  fi;
  good = 0
}

/* Where the others begin to count, who are not about to leave: each look is a step of its own. */
inline beginToCount() { /* AnnounceCells::beginToCount */
  start = 0;
  do
  :: p == RANKS -> break
  :: p == self -> p++
  :: p < RANKS && p != self ->
    atomic { /* AnnounceTable::firstOf */
      if
#ifndef BREAK_LEAVING
      :: HAS(p, LEAVING) -> start = 0; p = 0
#endif
      :: owner[p] == x && life[p] != LEAVING && first[p] != UNKNOWN -> start = first[p]; p++
      :: else -> p++
      fi
    }
  od;
#ifdef BREAK_COUNT
  start = 0;
#endif
  p = 0;
  d_step { /* AnnounceCell::beginAt */
    knows[self] = 1;
    counted[self] = start;
    settled[self] = start;
    ended[self] = start;
    first[self] = start;
    start = 0
  }
}

/* Announces the next invocation of X, looks at the cells of all others until they have announced it,
 * too, and finishes it. What has been found once is not looked up again, but read as if it were X's. */
inline invoke() { /* Admission::submit */
  d_step { /* AnnounceCells::activate */
    if
    :: owner[self] != x -> owner[self] = x; ended[self] = 0; first[self] = UNKNOWN
    :: else
    fi;
    life[self] = ACTIVE
  }
  if
  :: !knows[self] -> beginToCount()
  :: else
  fi;
  d_step { /* Admission::reserve */ counted[self]++; real[self]++ };
  do
  :: p < RANKS && p == self -> p++
  :: p < RANKS && p != self ->
    if
    :: known & (1 << p)
    :: else -> atomic { /* peerCell, AnnounceTable::find */ owner[p] == x && life[p] != LEAVING -> known = known | (1 << p) }
    fi;
    atomic { /* AnnounceCell::find */
      owner[p] != x || (knows[p] && counted[p] >= counted[self]) ->
      assert(owner[p] == x);
      assert(real[p] - counted[p] == real[self] - counted[self]) /* they mean the same */
    };
    p++
  :: p == RANKS -> break
  od;
  p = 0;
  ended[self] = counted[self]
}

active [RANKS] proctype Rank() { /* the program */
  byte self = _pid, p = 0, n = 0, steps = 0, known = 0, start = 0;
  bit good = 0;
  do
  :: n < TIMES ->
    invoke();
    n++;
    /* Deregisters, or does not: so many steps, or none. */
    do
    :: steps < STEPS -> advance(); steps++
    :: break
    od;
    steps = 0
  :: else -> break
  od;
  /* In the end all deregister: then all cells come back. */
  do
  :: owner[self] == x -> advance()
  :: else -> break
  od;
  isOver[self] = 1
}

#if RANKS == 2
ltl everybodyEnds { <>(isOver[0] && isOver[1]) }
#endif
