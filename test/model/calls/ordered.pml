/* Ordered connectors (docs/decisions/gpu/ordered-connectors.md): the calls of a communicator that are work of a stream. Each rank makes
 * the same calls, 1, 2, ..., one after the other; in each call a plan says who sends to whom. What is sent lies at the receiver, one
 * line a sender in block n % RING, whose flag is the call's number as far as a word has room: n % MODULUS here.
 *
 * A rank announces call n when it has finished all before, and when all have begun n + 1 - RING: then each block that call n uses
 * at a peer has been finished there. It announces as well if the plan has no work for it. Lines of calls long ago have flags that come again; so a
 * rank clears a block before it announces, often enough that each is cleared within MODULUS calls.
 *
 * With the announcement travels the signature of the call, in RING slots. Before a rank announces n + RING, which overwrites its own of n, it compares
 * those of n with all. The first rank that comes so far finds all of them, and so any that differ.
 *
 * The code differs: it announces before it waits, and RING is 4, see the decision. device_collective_test tries its rule of who
 * may begin.
 *
 * Behind the brace of each step stand the functions that take it, see citations_test.py.
 *
 * -DMISMATCH          rank 0 makes another call than the others, once
 * -DABORT             the communicator fails at any time
 * -DAGAIN             afterwards another communicator has the memory, whose numbers go on from the largest that was used
 * -DBREAK_IDLE        a rank without work in a call does not announce it
 * -DBREAK_CREDIT      a rank does not wait for who is RING calls behind
 * -DBREAK_CLEAR       lines are not cleared
 * -DBREAK_CLEAR_ONE   every MODULUS / 2 calls one block is cleared, not each of them in turn
 * -DBREAK_CLEAR_LATE  a block is cleared after the announcement
 * -DBREAK_RESTART     numbers of the next communicator begin anew
 * -DBREAK_MEMBERS     the next communicator begins on a rank that has ended the one before, whatever the others do
 */
#ifndef N
#define N 3
#endif
#ifndef CALLS
#define CALLS 6
#endif
#define RING 2
#ifndef MODULUS
#define MODULUS 4 /* a multiple of RING */
#endif
#ifdef AGAIN
#define COMMUNICATORS 2
#else
#define COMMUNICATORS 1
#endif

/* What the plan of call n is, the same on all ranks: 0 all to all, 1 from rank 0, 2 to rank 0, 3 rank 0 to 1 only. */
byte plan[CALLS + 1];
#define sends(n, from, to) ((from) != (to) && (plan[n] == 0 || (plan[n] == 1 && (from) == 0) || (plan[n] == 2 && (to) == 0) || \
                            (plan[n] == 3 && (from) == 0 && (to) == 1)))

#define HAS_BEGUN(p, k) (begun[c * N + (p)] >= (k))
#if N == 2
#define ALL_HAVE_BEGUN(k) (HAS_BEGUN(0, k) && HAS_BEGUN(1, k))
#else
#define ALL_HAVE_BEGUN(k) (HAS_BEGUN(0, k) && HAS_BEGUN(1, k) && HAS_BEGUN(2, k))
#endif

#define FLAG(k) ((k) % MODULUS + 1) /* 0: cleared */
typedef Lines { byte flag[N * RING]; byte data[N * RING] };
Lines lines[N];   /* at the receiver: [sender * RING + block] */
byte begun[N * COMMUNICATORS]; /* the largest number that a rank has announced */
typedef Slots { byte number[RING]; bit signature[RING] };
Slots slots[N];   /* of what a rank has announced */
bit failed;       /* one word for all: how it gets everywhere is not the matter here */
bit noticed[N];   /* a rank has compared a call with one that differs */
byte departed[COMMUNICATORS]; /* ranks that have ended a communicator */
byte ended;
byte odd;         /* the call that rank 0 makes otherwise, 0: none */
bit isSilent;     /* in it, it neither sends nor receives; else only its operation is another */

#define ANNOUNCES(p, k) (slots[p].number[(k) % RING] == (k))
#define DIFFERS(p, q, k) (ANNOUNCES(p, k) && ANNOUNCES(q, k) && slots[p].signature[(k) % RING] != slots[q].signature[(k) % RING])

/* Compares call k with all that have announced it. */
inline compare(k) { /* whatPeerCalls */
  d_step { /* whatPeerCalls */
    p = 0;
    do
    :: p < N ->
      if
      :: DIFFERS(me, p, k) -> noticed[me] = 1; failed = 1
      :: else
      fi;
      p++
    :: else -> break
    od;
    p = 0
  }
}

inline clear(block) { /* DeviceCollective::clearsLines, clearLines */
  d_step { /* clearLines */
    p = 0;
    do
    :: p < N -> lines[me].flag[p * RING + (block)] = 0; p++
    :: else -> break
    od;
    p = 0
  }
}

#define WORKS(n) (plan[n] == 0 || plan[n] == 2 || me == 0 || plan[n] == 1 || (plan[n] == 3 && me == 1))

proctype Rank(byte me) { /* OrderedCalls::call */
  byte c, n, k, p, first; /* n: of the communicator; k: the number that memory knows */
  bit mine;
  do
  :: c < COMMUNICATORS ->
    n = 1;
    do
    :: n <= CALLS && !failed ->
      k = first + n;
      /* All have begun k + 1 - RING; and what they have said of k - RING has been compared. */
#ifndef BREAK_CREDIT
      if
      :: ALL_HAVE_BEGUN(n == 1 -> 0 : k + 1 - RING) /* in the first calls, too: blocks may still be about to be cleared */
      :: failed
      fi;
#endif
#ifndef BREAK_COMPARE
      if
      :: n > RING -> compare(k - RING)
      :: else
      fi;
#endif
      if
      :: failed -> break
      :: else
      fi;
      /* Nobody comes past a mismatch. */
      assert(failed || !(odd != 0 && n == odd + RING + 1));
#if !defined(BREAK_CLEAR) && !defined(BREAK_CLEAR_LATE)
#ifdef BREAK_CLEAR_ONE
      if
      :: k % (MODULUS - RING) == 0 -> clear((k + RING - 1) % RING)
      :: else
      fi;
#else
      /* The block of k + RING - 1, which nobody writes before k is announced: RING times in a row, every MODULUS - RING calls. */
      if
      :: k % (MODULUS - RING) < RING -> clear((k + RING - 1) % RING)
      :: else
      fi;
#endif
#endif
#ifdef BREAK_IDLE
      if
      :: WORKS(n) ->
#endif
      d_step { /* announceBegin */
        mine = (odd != 0 && n == odd && me == 0);
        slots[me].number[k % RING] = k;
        slots[me].signature[k % RING] = mine;
        mine = mine && isSilent;
        begun[c * N + me] = k
      };
#ifdef BREAK_IDLE
      :: else
      fi;
#endif
#ifdef BREAK_CLEAR_LATE
      if
      :: k % (MODULUS - RING) < RING -> clear((k + RING - 1) % RING)
      :: else
      fi;
#endif
#ifdef BREAK_COMPARE
      if
      :: n > RING -> compare(k - RING)
      :: else
      fi;
#endif
      /* Send, one line at a time. */
      p = 0;
      do
      :: p < N ->
        d_step { /* StepDriver::publish */
          if
          :: sends(n, me, p) && !mine -> lines[p].flag[me * RING + k % RING] = FLAG(k); lines[p].data[me * RING + k % RING] = c * CALLS + n
          :: else
          fi;
          p++
        }
      :: else -> break
      od;
      /* Receive, in any order as far as it matters: from each until its line has come, or until the call is seen to differ. */
      p = 0;
      do
      :: p < N ->
        if
        :: !sends(n, p, me) || mine
        :: sends(n, p, me) && !mine && lines[me].flag[p * RING + k % RING] == FLAG(k) ->
          assert(lines[me].data[p * RING + k % RING] == c * CALLS + n || failed)
        :: sends(n, p, me) && !mine && lines[me].flag[p * RING + k % RING] != FLAG(k) && DIFFERS(me, p, k) -> noticed[me] = 1; failed = 1
        :: failed
        fi;
        p++
      :: else -> break
      od;
      p = 0;
      n++
    :: n > CALLS || failed -> break
    od;
    /* A communicator that has failed gives no memory away: what is late may still be stored there. */
    departed[c]++;
    if
    :: failed -> c = COMMUNICATORS
    :: else ->
#ifndef BREAK_MEMBERS
      if
      :: departed[c] == N
      :: failed
      fi;
#endif
#ifdef BREAK_RESTART
      first = 0;
#else
      first = first + CALLS;
#endif
      c++
    fi;
    n = 0; k = 0
  :: else -> break
  od;
  ended++
}

#ifdef ABORT
active proctype Abort() { /* Daemon::fail */
  failed = 1
}
#endif

init {
  byte i = 1;
  atomic {
    do
    :: i <= CALLS ->
      if
      :: plan[i] = 0
      :: plan[i] = 1
#if N == 2
      :: plan[i] = 2
#else
      :: plan[i] = 3
#endif
      fi;
      i++
    :: else -> break
    od;
    i = 0;
#ifdef MISMATCH
    select(i : 1 .. CALLS);
    odd = i;
    if
    :: isSilent = 0
    :: isSilent = 1
    fi;
    i = 0;
#endif
    do
    :: i < N -> run Rank(i); i++
    :: else -> break
    od;
    i = 0
  }
}

ltl everybodyEnds { <> (ended == N) }
