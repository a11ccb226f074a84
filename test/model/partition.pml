/* Partitioned transfers of two ranks (docs/decisions/hosts/partitioned.md): rank 0 sends, rank 1 receives.
 *
 * A request has P partitions, sent in messages of PER, and E epochs; the receiver divides the same elements among two. Two threads of
 * the sender mark partitions, in any order; another one (but for ABORT)
 * marks partition 0 twice, and may be held up at that since an earlier epoch. With
 * REQUESTS=2 the sender makes a second request when it has freed the first, for whose words there is no room but where the first one's
 * were, and the receiver has both at a time. What programs do with buffers that are theirs shows as GARBAGE.
 *
 * -DABORT  each rank fails at any time, one after the other
 * -DMORE   the receiver starts one more epoch of the first request than the sender, which fails the communicator
 *
 * -DBREAK_PARITY   words are bits with the parity of the epoch
 * -DBREAK_RESET    words are bits that the sender takes back when it starts
 * -DBREAK_EPOCH    a word says that its message was ready, and not in which epoch
 * -DBREAK_CAS      a mark is made whether or not it was made before
 * -DBREAK_COUNT    the counter of a message is compared with the size of the message, in all epochs
 * -DBREAK_ADD      the counter is read and then stored
 * -DBREAK_RECEIVED the receiver says that it has all before it has read it
 * -DBREAK_EARLY    a partition is said to have arrived with the first message that overlaps it
 * -DBREAK_AGAIN    the receiver does not remember which messages it has
 * -DBREAK_LET_GO   words are used again as soon as their request is freed
 * -DBREAK_TOLD     a receive ends though the sender has not been told of it
 * -DBREAK_FREED    who waits for an epoch does not look whether the other side has freed its request
 * -DBREAK_SETTLE   a failed sender gives its buffer back while it is read
 */
#ifndef P
#define P 3
#endif
#ifndef PER
#define PER 1
#endif
#ifndef E
#define E 2
#endif
#ifndef REQUESTS
#define REQUESTS 1
#endif
#define M ((P + PER - 1) / PER)
#define Q 2
#define ROOM 1 /* of a ring of notices */
#define GARBAGE 255
#define VALUE(r, e, p) (100 * (r) + 10 * (e) + (p))

#define SENDER 0
#define RECEIVER 1
#define MADE 1
#define FREED 2
#define LET_GO 3

/* Partitions of message m; whether it overlaps partition q of the receiver, both in units of 1 / 2P of the buffer. */
#define FIRST(m) ((m) * PER)
#define END(m) (((m) + 1) * PER > P -> P : ((m) + 1) * PER)
#define OVERLAPS(m, q) (FIRST(m) * 2 < ((q) + 1) * P && (q) * P < END(m) * 2)

#ifdef MORE
#define EPOCHS(r) ((r) == 0 -> E - 1 : E) /* of the sender */
#else
#define EPOCHS(r) E
#endif

/* The sender's. Words lie in its only block. */
byte word[M];
byte marked[REQUESTS * P], marks[REQUESTS * M];
byte open[REQUESTS], given[REQUESTS * P]; /* by its program: the epoch; who marks what */
byte buffer[REQUESTS * P] = GARBAGE;
bool ended[REQUESTS], lateEnded[REQUESTS];
bool isBlockFree = true;
/* The receiver's. */
byte received[REQUESTS], arrived[REQUESTS * Q], expecting[REQUESTS];
byte out[REQUESTS * P] = GARBAGE;
bool isTold[REQUESTS], isAccessing, receiverEnded[REQUESTS];
/* What each knows of the other's requests, by rank and request. */
bool isKnown[2 * REQUESTS], isFreed[2 * REQUESTS], isLetGo[REQUESTS];
bool isRetired[REQUESTS];
bool failed[2];

chan ring0 = [ROOM] of { byte, byte };
chan ring1 = [ROOM] of { byte, byte };
chan waiting0 = [6] of { byte, byte };
chan waiting1 = [6] of { byte, byte };

inline fail() { /* Requests::fail */
  failed[SENDER] = true;
  failed[RECEIVER] = true
}

inline take(to, kind, r) { /* Matching::take, Matching::takeMade, Matching::takeFreed, Matching::takeLetGo */
  if
  :: kind == MADE -> isKnown[to * REQUESTS + r] = true
  :: kind == FREED -> isFreed[to * REQUESTS + r] = true
  :: kind == LET_GO && to == SENDER ->
    isLetGo[r] = true;
    if
    :: isRetired[r] -> isRetired[r] = false; isBlockFree = true
    :: else
    fi
  :: else
  fi
}

inline writeWaiting(mine, queue, from) { /* Matching::writeWaiting */
  do
  :: nempty(queue) && nfull(mine) ->
    queue ? kind, which;
    mine ! kind, which;
    if
    :: kind == MADE && from == RECEIVER -> isTold[which] = true
    :: else
    fi
  :: else -> break
  od
}

inline look(mine, theirs, queue, at) { /* Matching::look, Matching::lookLocked */
  atomic { /* Matching::lookLocked */
    do
    :: theirs ? kind, which -> take(at, kind, which)
    :: empty(theirs) -> break
    od;
    writeWaiting(mine, queue, at)
  }
}
#define HAS_NEWS(mine, theirs, queue) (nempty(theirs) || (nempty(queue) && nfull(mine)))

inline raiseMark() { /* raise */
  atomic { /* raise */
#ifdef BREAK_PARITY
    isFirst = marked[r * P + p] % 2 != e % 2;
#elif defined(BREAK_RESET)
    isFirst = marked[r * P + p] == 0;
#elif defined(BREAK_CAS)
    isFirst = true;
#else
    isFirst = marked[r * P + p] < e;
#endif
    if
    :: isFirst -> marked[r * P + p] = e
    :: else
    fi
  }
}

#ifdef BREAK_COUNT
#define GOAL (END(m) - FIRST(m))
#else
#define GOAL (e * (END(m) - FIRST(m)))
#endif

inline mark() { /* Requests::mark, ReadyMarks::mark */
  if
  :: failed[SENDER]
  :: else ->
    m = p / PER;
    raiseMark();
    if
    :: isFirst ->
#if defined(BREAK_ADD)
      count = marks[r * M + m] + 1;
      marks[r * M + m] = count;
      isFirst = count == GOAL;
#elif PER > 1
      atomic { /* ReadyMarks::mark */
        marks[r * M + m]++;
        isFirst = marks[r * M + m] == GOAL
      };
#endif
      if
      :: isFirst -> word[m] = e
      :: else
      fi
    :: else
    fi
  fi
}

#define GIVE(n) atomic { /* the program */ open[r] > given[r * P + n] -> p = n; e = open[r]; given[r * P + n] = e }

proctype Marker(byte r) { /* the program */
  byte e, p, m, count;
  bool isFirst;
  do
  :: GIVE(0); buffer[r * P] = VALUE(r, e, 0); mark()
#if P > 1
  :: GIVE(1); buffer[r * P + 1] = VALUE(r, e, 1); mark()
#endif
#if P > 2
  :: GIVE(2); buffer[r * P + 2] = VALUE(r, e, 2); mark()
#endif
  :: ended[r] -> break
  od
}

proctype Late(byte r) { /* the program */
  byte e, p, m, count;
  bool isFirst;
  if
  :: atomic { /* the program */ open[r] != 0 && marked[r * P] == open[r] -> e = open[r] };
    mark()
  :: ended[r]
  fi;
  lateEnded[r] = true
}

#define RECEIVED (isKnown[r] && received[r] >= e)
#define IS_FREED (isKnown[r] && isFreed[r])
#define SENDER_HAS_NEWS HAS_NEWS(ring0, ring1, waiting0)

inline startSend() { /* Requests::start */
  atomic { /* Requests::start */
    e++;
#ifdef BREAK_RESET
    for (p : 0 .. P - 1) { marked[r * P + p] = 0 };
    for (m : 0 .. M - 1) { word[m] = 0 };
#endif
    open[r] = e
  }
}

inline runSend() { /* SendRequest::run */
  do
  :: failed[SENDER] ->
#ifndef BREAK_SETTLE
    !isAccessing; /* Core::settleFailure */
#endif
    break
  :: !failed[SENDER] && SENDER_HAS_NEWS -> look(ring0, ring1, waiting0, SENDER)
  :: !failed[SENDER] && RECEIVED -> break
#ifndef BREAK_FREED
  :: !failed[SENDER] && IS_FREED && !RECEIVED -> fail() /* Request::abandoned */
#endif
  od
}

inline makeSend() { /* Matching::add, Matching::allocate */
  do
  :: isBlockFree || failed[SENDER] -> break
  :: !isBlockFree && SENDER_HAS_NEWS -> look(ring0, ring1, waiting0, SENDER) /* occlAgain: once more */
  od;
  atomic { /* Matching::allocate */
    isBlockFree = false;
    for (m : 0 .. M - 1) { word[m] = 0 };
    waiting0 ! MADE, r;
    writeWaiting(ring0, waiting0, SENDER)
  }
}

inline freeSend() { /* Requests::release, Matching::remove */
  atomic { /* Matching::remove */
    waiting0 ! LET_GO, r;
    waiting0 ! FREED, r;
    writeWaiting(ring0, waiting0, SENDER);
#ifdef BREAK_LET_GO
    isBlockFree = true
#else
    if
    :: isLetGo[r] -> isBlockFree = true
    :: else -> isRetired[r] = true
    fi
#endif
  }
}

proctype Sends() { /* the program */
  byte r, e, p, m, kind, which;
  for (r : 0 .. REQUESTS - 1) {
    makeSend();
    e = 0;
    do
    :: e < EPOCHS(r) && !failed[SENDER] ->
      startSend();
      runSend();
      atomic { /* Requests::ended */
        open[r] = 0;
        for (p : 0 .. P - 1) { buffer[r * P + p] = GARBAGE }
      }
    :: else -> break
    od;
    ended[r] = true;
    lateEnded[r]; /* no call is under way when a request is freed */
    freeSend()
  }
}

#if defined(BREAK_PARITY)
#define READY(m) (word[m] % 2 == e % 2)
#elif defined(BREAK_RESET) || defined(BREAK_EPOCH)
#define READY(m) (word[m] != 0)
#else
#define READY(m) (word[m] == e)
#endif
#define KNOWN isKnown[REQUESTS + r]
#define NEXT(n) (KNOWN && !has[n] && READY(n))
#define RECEIVER_HAS_NEWS HAS_NEWS(ring1, ring0, waiting1)

inline say() { /* ReceiveRequest::complete */
  received[r] = e
}

inline beginReceive() { /* Requests::start, Arrivals::begin */
  atomic { /* Arrivals::begin */
    e++;
    left = M;
    for (m : 0 .. M - 1) { has[m] = false };
    expecting[r] = e
  }
}

inline arrive() { /* Arrivals::add, Arrivals::hasArrived */
  atomic { /* Arrivals::add */
    has[m] = true;
    left--;
    for (q : 0 .. Q - 1) {
      isMissing = false;
      for (k : 0 .. M - 1) {
        if
        :: OVERLAPS(k, q) && !has[k] -> isMissing = true
        :: else
        fi
      };
#ifdef BREAK_EARLY
      isMissing = false;
#endif
      if
      :: !isMissing && OVERLAPS(m, q) -> arrived[r * Q + q] = e
      :: else
      fi
    }
#ifdef BREAK_AGAIN
    ;
    has[m] = false
#endif
  }
}

/* Between threads: by the sender's address, inside of an access. */
inline read() { /* ReceiveRequest::read, readReferred */
#ifdef BREAK_RECEIVED
  if
  :: left == 1 -> say()
  :: else
  fi;
#endif
  isAccessing = true;
  if
  :: failed[SENDER] || failed[RECEIVER] -> isAccessing = false
  :: else ->
    for (k : FIRST(m) .. END(m) - 1) {
      assert(out[r * P + k] == GARBAGE); /* once */
      out[r * P + k] = buffer[r * P + k];
      assert(out[r * P + k] == VALUE(r, e, k))
    };
    isAccessing = false;
    arrive()
  fi
}

inline runReceive() { /* ReceiveRequest::run */
  do
  :: failed[RECEIVER] -> break
  :: !failed[RECEIVER] && RECEIVER_HAS_NEWS -> look(ring1, ring0, waiting1, RECEIVER)
  :: !failed[RECEIVER] && left == 0 -> break
  :: !failed[RECEIVER] && NEXT(0) -> m = 0; read()
#if P > PER
  :: !failed[RECEIVER] && NEXT(1) -> m = 1; read()
#endif
#if P > 2 * PER
  :: !failed[RECEIVER] && NEXT(2) -> m = 2; read()
#endif
#ifndef BREAK_FREED
  :: !failed[RECEIVER] && KNOWN && isFreed[REQUESTS + r] && left != 0 -> fail() /* Request::abandoned */
#endif
  od
}

inline completeReceive() { /* ReceiveRequest::complete */
  say();
#ifndef BREAK_TOLD
  do
  :: isTold[r] || failed[RECEIVER] -> break
  :: !isTold[r] && !failed[RECEIVER] && RECEIVER_HAS_NEWS -> look(ring1, ring0, waiting1, RECEIVER)
  od
#endif
}

inline freeReceive() { /* Requests::release, Matching::remove */
  atomic { /* Matching::remove */
    waiting1 ! LET_GO, r;
    waiting1 ! FREED, r;
    writeWaiting(ring1, waiting1, RECEIVER)
  }
}

proctype Receives(byte r) { /* the program */
  byte e, m, q, k, left, kind, which;
  bool has[M], isMissing;
  atomic { /* Matching::add */
    waiting1 ! MADE, r;
    writeWaiting(ring1, waiting1, RECEIVER)
  };
  do
  :: e < E && !failed[RECEIVER] ->
    beginReceive();
    runReceive();
    if
    :: failed[RECEIVER] -> break
    :: else -> completeReceive()
    fi;
    atomic { /* Requests::ended */
      expecting[r] = 0;
      for (k : 0 .. P - 1) { out[r * P + k] = GARBAGE }
    }
  :: else -> break
  od;
  atomic { /* Requests::ended */
    expecting[r] = 0;
    receiverEnded[r] = true
  };
  freeReceive()
}

/* What has arrived may be read. */
#define IS_RIGHT(r, p) (out[(r) * P + (p)] == VALUE(r, expecting[r], p))
#define HAS_ARRIVED(r, q) (expecting[r] != 0 && arrived[(r) * Q + (q)] == expecting[r])

proctype Asks(byte r) { /* Requests::arrived */
end:
  do
  :: atomic { /* Requests::arrived */ HAS_ARRIVED(r, 0) && !IS_RIGHT(r, 0) -> assert(false) }
#if P > 1
  :: atomic { /* Requests::arrived */ HAS_ARRIVED(r, 0) && !IS_RIGHT(r, (P - 1) / 2) -> assert(false) }
  :: atomic { /* Requests::arrived */ HAS_ARRIVED(r, 1) && !IS_RIGHT(r, P - 1) -> assert(false) }
  :: atomic { /* Requests::arrived */ HAS_ARRIVED(r, 1) && !IS_RIGHT(r, P / 2) -> assert(false) }
#endif
  od
}

#ifdef ABORT
proctype Abort() { /* occlCommAbort, Fabric::fail */
  failed[SENDER] = true;
  failed[RECEIVER] = true
}
proctype AbortTheOther() { /* occlCommAbort, Fabric::fail */
  failed[RECEIVER] = true;
  failed[SENDER] = true
}
#endif

init {
  byte r;
  atomic {
    run Sends();
    for (r : 0 .. REQUESTS - 1) {
      run Marker(r);
      run Marker(r);
#ifdef ABORT
      lateEnded[r] = true; /* there is none: too many states */
#else
      run Late(r);
#endif
      run Receives(r);
      run Asks(r)
    };
#ifdef ABORT
    if
    :: run Abort()
    :: run AbortTheOther()
    fi
#endif
  }
}

#if REQUESTS == 2
ltl everybodyEnds { <> (ended[0] && ended[1] && receiverEnded[0] && receiverEnded[1]) }
#else
ltl everybodyEnds { <> (ended[0] && receiverEnded[0]) }
#endif
