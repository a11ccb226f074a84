/* Pre-posted rings (docs/memory.md): the owner of a sequence has a ring of K blocks and says once where it is.
 * A reader that knows the ring polls its blocks without waiting for announcements. When the owner has retired the
 * sequence and come back to it, its invocations use other blocks, which only the announcements name, and who polls
 * the ring in vain must find that out. Each reader comes back anew when it likes, too, and may then rely on the
 * old ring again.
 *
 * Each invocation has one of two shapes, which share the ring: the small one is a line that reader 0 alone reads,
 * the large one two lines that both read. A line's flag and data come together (LL128: the flag last). The owner
 * waits for no data of the readers: it is ahead of them as far as anything lets it.
 *
 * -DBREAK_CONFIRM  who polls the ring does not look at the announcement
 * -DBREAK_FLAGS    all invocations have the same flag
 * -DBREAK_SHAPES   flags come again, K + 1 invocations have the same
 * -DBREAK_RING     the owner does not look whether the readers are through with a block of the ring
 * -DBREAK_BLOCK    nor with a block outside of it
 * -DBREAK_READERS  it looks at those alone who read the small shape
 * -DBREAK_REUSE    the ring's memory is somebody else's as soon as the owner has retired the sequence
 */
#define READERS 2
#define K 2
#ifndef N
#define N 5 /* invocations */
#endif
#define BLOCKS 3 /* others than the ring's */

#define READS(r, n) ((r) == 0 || isLarge[n])
#define IS_DONE(r, n) (!READS(r, n) || done[r] > (n))
#define ALL_DONE(n) (IS_DONE(0, n) && IS_DONE(1, n))
#if defined(BREAK_FLAGS)
#define FLAG(n) 1
#elif defined(BREAK_SHAPES)
#define FLAG(n) ((n) / (K + 1) + 1)
#else
#define FLAG(n) ((n) + 1)
#endif
#if defined(BREAK_RING)
#define RING_IS_FREE(n) true
#elif defined(BREAK_READERS)
#define RING_IS_FREE(n) ((n) < K || done[0] > (n) - K)
#else
#define RING_IS_FREE(n) ((n) < K || ALL_DONE((n) - K))
#endif
#ifdef BREAK_BLOCK
#define IS_FREE(b) true
#else
#define IS_FREE(b) (holder[b] == 0 || ALL_DONE(holder[b] - 1))
#endif

bit isLarge[N], areChosen;
byte flags[K + BLOCKS], data[K + BLOCKS]; /* first lines of the ring's blocks, then of the others */
byte flags2[K + BLOCKS], data2[K + BLOCKS];
bit isPosted, isGivenBack;
byte recordOf[K]; /* ordinal + 1 */
byte recordAt[K]; /* its block */
byte holder[BLOCKS]; /* ordinal + 1 of the last invocation that had it */
byte done[READERS];
byte ended;

inline takeBlock() { /* Admission::reserveMemory */
  atomic { /* Arena::allocate, Admission::canReclaim */
    if
    :: IS_FREE(0) -> b = 0
    :: IS_FREE(1) -> b = 1
    :: IS_FREE(2) -> b = 2
    fi;
    holder[b] = n + 1;
    at = K + b;
    flags[at] = 0;
    flags2[at] = 0
  }
}

active proctype Owner() { /* Admission::submit */
  byte n, at, b;
  bit usesRing = 1;
  atomic { /* none: all ranks call the same */
    do
    :: n < N ->
      if
      :: isLarge[n] = 0
      :: isLarge[n] = 1
      fi;
      n++
    :: else -> break
    od;
    n = 0;
    areChosen = 1
  }
  isPosted = 1;
  do
  :: n < N ->
    if
    :: usesRing && n != 0 ->
      usesRing = 0;
#ifdef BREAK_REUSE
      isGivenBack = 1
#endif
    :: true
    fi;
    /* Its record is written again only when the readers are through with the invocation that has it. */
    RING_IS_FREE(n);
    if
    :: usesRing -> at = n % K
    :: else -> takeBlock()
    fi;
    d_step { /* AnnounceCell::publish */ recordAt[n % K] = at; recordOf[n % K] = n + 1 };
    d_step { /* StepDriver::copy */ data[at] = n; flags[at] = FLAG(n) };
    if
    :: isLarge[n] -> d_step { /* StepDriver::copy */ data2[at] = n; flags2[at] = FLAG(n) }
    :: else
    fi;
    n++
  :: else -> break
  od;
  ended++
}

#ifdef BREAK_REUSE
active proctype Another() { /* none: -DBREAK_REUSE */
  byte i, flag;
  do
  :: isGivenBack ->
    select(i : 0 .. K - 1);
    select(flag : 1 .. N);
    d_step { /* none: -DBREAK_REUSE */ flags[i] = flag; data[i] = N };
    break
  :: ended == READERS + 1 -> break
  od
}
#endif

#define IS_ANNOUNCED (recordOf[m % K] == m + 1)
#define HAS_COME (isBound && flags[at] == FLAG(m) && (!isLarge[m] || flags2[at] == FLAG(m)))
#define IS_RIGHT (data[at] == m && (!isLarge[m] || data2[at] == m))
#ifdef BREAK_CONFIRM
#define IS_ELSEWHERE (IS_ANNOUNCED && !isBound)
#else
#define IS_ELSEWHERE (IS_ANNOUNCED && !(isBound && at == recordAt[m % K]))
#endif

active [READERS] proctype Reader() { /* Executor::run, prepostedBlock */
  byte m, at, me;
  bit knowsRing, isBound;
  me = _pid - 1;
#ifdef BREAK_REUSE
  me = _pid - 2;
#endif
  areChosen;
  do
  :: m < N ->
    if
    :: knowsRing -> knowsRing = 0 /* comes back */
    :: true
    fi;
    if
    :: READS(me, m) ->
      knowsRing = isPosted;
      isBound = knowsRing;
      at = m % K;
      do
      :: HAS_COME -> break
      :: atomic { /* Executor::confirm, confirmPeer */ !HAS_COME && IS_ELSEWHERE -> at = recordAt[m % K]; isBound = 1; knowsRing = 0 }
      od;
      assert(IS_RIGHT);
      assert(HAS_COME && IS_RIGHT) /* still, until it says that it is done */
    :: else
    fi;
    done[me] = m + 1;
    m++
  :: else -> break
  od;
  ended++
}

ltl everybodyEnds { <> (ended == READERS + 1) }
