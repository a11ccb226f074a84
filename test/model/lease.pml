/* Leases (docs/memory.md, pre-posted rings): the owner of a collective has a ring of K blocks and says once
 * where it is. A reader that knows the ring polls its blocks without waiting for announcements. When the owner
 * has registered the collective anew, its invocations use other blocks, which only the announcements
 * name, and who polls the ring in vain must find that out. Each reader registers anew when it likes, too, and
 * may then rely on the old lease again.
 *
 * An invocation's data are one line, whose flag and data come together (LL). The owner waits for no data of the
 * readers: it is ahead of them as far as anything lets it.
 *
 * -DBREAK_CONFIRM  who polls the ring does not look at the announcement
 * -DBREAK_FLAGS    all invocations have the same flag
 * -DBREAK_RING     the owner does not look whether the readers are through with a block of the ring
 * -DBREAK_BLOCK    nor with a block outside of it
 * -DBREAK_REUSE    the ring's memory is somebody else's as soon as the owner has registered anew
 */
#define READERS 2
#define K 2
#ifndef N
#define N 5 /* invocations */
#endif
#define BLOCKS 3 /* others than the ring's */

#define ALL_DONE(count) (done[0] >= (count) && done[1] >= (count))
#ifdef BREAK_FLAGS
#define FLAG(n) 1
#else
#define FLAG(n) ((n) + 1)
#endif
#ifdef BREAK_RING
#define RING_IS_FREE(n) true
#else
#define RING_IS_FREE(n) ((n) < K || ALL_DONE((n) + 1 - K))
#endif
#ifdef BREAK_BLOCK
#define IS_FREE(b) true
#else
#define IS_FREE(b) (holder[b] == 0 || ALL_DONE(holder[b]))
#endif

byte flags[K + BLOCKS], data[K + BLOCKS]; /* the ring's blocks, then the others */
bit isLeased, isGivenBack;
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
    flags[at] = 0
  }
}

active proctype Owner() { /* Admission::submit */
  byte n, at, b;
  bit isResident = 1;
  isLeased = 1;
  do
  :: n < N ->
    if
    :: isResident && n != 0 ->
      isResident = 0;
#ifdef BREAK_REUSE
      isGivenBack = 1
#endif
    :: true
    fi;
    /* Its record is written again only when the readers are through with the invocation that has it. */
    RING_IS_FREE(n);
    if
    :: isResident -> at = n % K
    :: else -> takeBlock()
    fi;
    d_step { /* AnnounceCell::publish */ recordAt[n % K] = at; recordOf[n % K] = n + 1 };
    d_step { /* StepDriver::copy */ data[at] = n; flags[at] = FLAG(n) };
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
#define HAS_COME (isBound && flags[at] == FLAG(m))
#ifdef BREAK_CONFIRM
#define IS_ELSEWHERE (IS_ANNOUNCED && !isBound)
#else
#define IS_ELSEWHERE (IS_ANNOUNCED && !(isBound && at == recordAt[m % K]))
#endif

active [READERS] proctype Reader() { /* Executor::run, leasedRing */
  byte m, at, me;
  bit knowsRing, isBound;
  me = _pid - 1;
#ifdef BREAK_REUSE
  me = _pid - 2;
#endif
  do
  :: m < N ->
    if
    :: knowsRing -> knowsRing = 0 /* registers anew */
    :: true
    fi;
    knowsRing = isLeased;
    isBound = knowsRing;
    at = m % K;
    do
    :: HAS_COME -> break
    :: atomic { /* Executor::confirm, confirmPeer */ !HAS_COME && IS_ELSEWHERE -> at = recordAt[m % K]; isBound = 1; knowsRing = 0 }
    od;
    assert(data[at] == m);
    assert(flags[at] == FLAG(m) && data[at] == m); /* still, until it says that it is done */
    done[me] = m + 1;
    m++
  :: else -> break
  od;
  ended++
}

ltl everybodyEnds { <> (ended == READERS + 1) }
