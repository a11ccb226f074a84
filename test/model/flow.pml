/* A flow (docs/decisions/hosts/net.md): rank A sends messages to rank B on another machine. A's block of the arena
 * has the slots, the tail and the head; B has a mirror of it. Two threads of each rank move what has changed, in
 * frames on one connection, in order. Messages are counted within an invocation, credit is the head that comes back,
 * and what an invocation has said is over when its rank says that it has finished. The next invocation, of another
 * number of messages, uses the same block as soon as both ranks have finished the last one.
 *
 * A connection takes CAPACITY frames, then it is full; with -DCUT it may end at any time, for good, with all that is
 * on its way.
 *
 * -DBREAK_TAIL     A's executor stores the tail before the slot
 * -DBREAK_WORD     B's receiver stores the word of a put before its bytes
 * -DBREAK_CREDIT   A's executor does not wait for the head
 * -DBREAK_DONE     A's sender looks whether the invocation is done after it has looked at the tail
 * -DBREAK_HEAD     B's sender says that it has finished before it sends the last head
 * -DBREAK_DROP     what A's sender watches for B is not dropped when B has finished
 * -DBREAK_LOCK     that is dropped while A's sender is in the middle of a pass
 * -DBREAK_CLEAR    B's receiver clears no words when A begins an invocation
 * -DBREAK_PUBLISH  it clears them after B's executor can see that
 * -DBREAK_REUSE    A uses its block again as soon as it has finished itself
 * -DBREAK_FULL     what a full connection does not take counts as sent
 * -DBREAK_READ     a receiver does not read while its rank's sender finds the connection full
 * -DBREAK_FAIL     with CUT: executors do not look whether the connection has ended
 */
#ifndef N
#define N 3 /* invocations, at most 3 */
#endif
#ifndef DEPTH
#define DEPTH 1 /* slots */
#endif
#ifndef CAPACITY
#define CAPACITY 1
#endif
#ifndef MOST
#define MOST 2 /* messages */
#endif
#define MESSAGES(n) ((n) % MOST + 1)
#define VALUE(n, m) ((n) * MOST + (m) + 1)

mtype = { Publish, Slice, Head, Finished };
/* What; the invocation, or the bytes of a slice; the word. */
chan toB = [CAPACITY] of { mtype, byte, byte };
chan toA = [CAPACITY] of { mtype, byte, byte };
bit down; /* the connection */
byte ended;

/* A. */
byte slots[DEPTH], tail, head;
byte openA, doneA; /* invocations so far */
byte doneOfB;      /* in the mirror of B */
bit lockA, hasFinished[3];
bit fullA;
/* B. */
byte mirror[DEPTH], tailAtB, headAtB; /* A's block */
byte published;                       /* invocations whose record is in the mirror */
byte openB, doneB;
bit lockB;
bit fullB;

#ifdef BREAK_FAIL
#define FAILS false
#else
#define FAILS down
#endif
#ifdef BREAK_REUSE
#define IS_FREE(n) (doneA >= (n))
#else
#define IS_FREE(n) (doneA >= (n) && doneOfB >= (n))
#endif
#ifdef BREAK_CREDIT
#define HAS_CREDIT(m) true
#else
#define HAS_CREDIT(m) ((m) < DEPTH || head > (m) - DEPTH)
#endif
#ifdef BREAK_READ
#define READS(isFull) (!(isFull))
#else
#define READS(isFull) true
#endif

active proctype ExecutorOfA() { /* Executor::run, StepDriver::copy */
  byte n, m;
  do
  :: n < N ->
    if
    :: FAILS -> break
    :: IS_FREE(n) /* Admission::canReclaim */
    fi;
    d_step { /* Admission::submit, Network::open */ tail = 0; head = 0; openA = n + 1 };
    m = 0;
    do
    :: m < MESSAGES(n) ->
      if
      :: FAILS -> goto over
      :: HAS_CREDIT(m)
      fi;
#ifdef BREAK_TAIL
      tail = m + 1;
      slots[m % DEPTH] = VALUE(n, m);
#else
      slots[m % DEPTH] = VALUE(n, m);
      tail = m + 1;
#endif
      m++
    :: else -> break
    od;
    doneA = n + 1;
    n++
  :: else -> break
  od;
over:
  ended++
}

active proctype ExecutorOfB() { /* Executor::run, StepDriver::copy */
  byte n, m;
  do
  :: n < N ->
    openB = n + 1; /* Network::open */
    m = 0;
    do
    :: m < MESSAGES(n) ->
      if
      :: FAILS -> goto over
      :: published == n + 1 && tailAtB > m
      fi;
      assert(mirror[m % DEPTH] == VALUE(n, m));
      headAtB = m + 1;
      m++
    :: else -> break
    od;
    doneB = n + 1;
    n++
  :: else -> break
  od;
over:
  ended++
}

/* Of a sender, which leaves its pass if there is no room. To nobody everything is sent. */
#ifdef BREAK_FULL
#define IF_FULL(isFull) skip
#else
#define IF_FULL(isFull) isFull = 1; goto noRoom
#endif
#define PUT(connection, isFull, what, number, word) \
  if \
  :: down \
  :: nfull(connection) -> connection!what, number, word \
  :: full(connection) && !down -> IF_FULL(isFull) \
  fi

#ifdef BREAK_DROP
#define WATCHES(c) true
#else
#define WATCHES(c) (!hasFinished[c])
#endif
#define MORE_OF(c) (openA > (c) && (!isPublished[c] || \
  (!finishedIsSent[c] && (doneA > (c) || (WATCHES(c) && tail > sent[c])))))

active proctype SenderOfA() { /* Network::send, Network::sendTo */
  byte c, t, sent[3];
  bit isDone, isPublished[3], finishedIsSent[3];
  do
  :: down || finishedIsSent[N - 1] -> break
  :: !down && !lockA && (MORE_OF(0) || MORE_OF(1) || MORE_OF(2)) && (!fullA || nfull(toB)) ->
    atomic { /* none: the lock */ !lockA -> lockA = 1; fullA = 0 };
    c = 0;
    do
    :: c < openA && finishedIsSent[c] -> c++
    :: c < openA && !finishedIsSent[c] ->
      if
      :: !isPublished[c] ->
        PUT(toB, fullA, Publish, c, 0);
        isPublished[c] = 1
      :: else
      fi;
#ifdef BREAK_DONE
      t = tail;
      isDone = doneA > c;
#else
      isDone = doneA > c; /* Network::sendCall */
      t = tail; /* Network::sendSlices, putSlices */
#endif
      do
      :: WATCHES(c) && t > sent[c] ->
        assert(openA == c + 1); /* the block is still of that invocation */
        PUT(toB, fullA, Slice, slots[sent[c] % DEPTH], sent[c] + 1);
        sent[c]++
      :: else -> break
      od;
      if
      :: isDone ->
        PUT(toB, fullA, Finished, c, 0);
        finishedIsSent[c] = 1
      :: else
      fi;
      c++
    :: else -> break
    od;
noRoom:
    lockA = 0
  od;
  ended++
}

#define HAS_MORE_B (openB > c && ((published > c && headAtB > sent) || doneB > c))

/* Its next call has nothing to be sent before A has heard that this one is finished. */
active proctype SenderOfB() { /* Network::send, Network::sendTo */
  byte c, sent, h;
  bit isDone, finishedIsSent;
  do
  :: c == N || down -> break
  :: c < N && !down && HAS_MORE_B && !lockB && (!fullB || nfull(toA)) ->
    atomic { /* none: the lock */ !lockB -> lockB = 1; fullB = 0 };
    isDone = doneB > c; /* Network::sendCall */
#ifdef BREAK_HEAD
    if
    :: isDone && !finishedIsSent ->
      PUT(toA, fullB, Finished, c, 0);
      finishedIsSent = 1
    :: else
    fi;
#endif
    h = (published > c -> headAtB : 0); /* Network::sendHeads, Network::sendHead */
    if
    :: h > sent ->
      PUT(toA, fullB, Head, 0, h);
      sent = h
    :: else
    fi;
    if
    :: isDone ->
#ifndef BREAK_HEAD
      PUT(toA, fullB, Finished, c, 0);
#endif
      finishedIsSent = 0;
      c++;
      sent = 0
    :: else
    fi;
noRoom:
    lockB = 0
  od;
  ended++
}

active proctype ReceiverOfB() { /* Network::receive */
  byte number, word, numFinished;
  do
  :: down || numFinished == N -> break
  :: READS(fullB) && toB?[Publish, _, _] ->
    atomic { /* none: the lock */ !lockB -> lockB = 1 };
    toB?Publish, number, word; /* Network::published */
#ifdef BREAK_PUBLISH
    published = number + 1;
#endif
#ifndef BREAK_CLEAR
    d_step { /* Network::published */ tailAtB = 0; headAtB = 0 };
#endif
    published = number + 1;
    lockB = 0
  :: READS(fullB) && toB?[Slice, _, _] ->
    toB?Slice, number, word; /* its bytes, then its word */
#ifdef BREAK_WORD
    tailAtB = word;
    mirror[(word - 1) % DEPTH] = number
#else
    mirror[(word - 1) % DEPTH] = number;
    tailAtB = word
#endif
  :: READS(fullB) && toB?[Finished, _, _] -> toB?Finished, number, word; numFinished++ /* Network::finished */
  od;
  ended++
}

active proctype ReceiverOfA() { /* Network::receive */
  byte number, word, numFinished;
  do
  :: down || numFinished == N -> break
  :: READS(fullA) && toA?[Head, _, _] ->
    toA?Head, number, word;
    d_step { /* none: of a word the largest counts */
      if
      :: word > head -> head = word
      :: else
      fi
    }
  :: READS(fullA) && toA?[Finished, _, _] ->
    toA?Finished, number, word;
#ifdef BREAK_LOCK
    hasFinished[number] = 1;
#else
    atomic { /* Network::finished */ !lockA -> hasFinished[number] = 1 };
#endif
    doneOfB = number + 1;
    numFinished++
  od;
  ended++
}

#ifdef CUT
active proctype Cut() { /* none: the network */
  down = 1
}
#endif

ltl everybodyEnds { <> (ended == 6) }
