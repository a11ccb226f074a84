/* Lanes of asynchronous calls on devices (docs/decisions/gpu/lanes.md): which lane and number each call gets, and when a rank puts it into its
 * window, under every order of starts, ends and steps of the ranks. Each rank starts CALLS calls of each of IDS ids in an order of its own. All
 * enter each call in the same lane under the same number, and the numbers of a lane one after the other; in a lane one call runs at a time on a
 * rank, and calls of an id run one after the other (assertions); and each program ends (deadlock: no step is taken twice, so there are no cycles).
 *
 * What a rank does under the lock is a step, but for the order, which others read without it: a place, then the tail. What the rank itself reads and
 * writes alone is a step. A lane is any one that the rules allow; the code takes a certain one.
 *
 * A device begins a call when the one before is complete there, stores the number to a word for each other rank, and completes it when
 * all words are there. The words stay as the lane's memory does.
 *
 * Behind the brace of each step stand the functions that take it, see citations_test.py.
 *
 * -DEARLY=mask       bit rank * IDS + id: there calls of the id are in the order of a stream
 * -DGOES_BY          a program whose call in the order of a stream is refused starts other calls before it tries again
 * -DGATE             rank 0's stream comes to the first call of id 0 when the first of id 1 is complete there
 * -DWAITS            rank 0 waits for each call before it starts the next
 * -DKERNELS=2        calls of an id need the one kernel and the other by turns, each with lanes and a window of its own
 * -DRECORDS=n        fewer than there are ids: one is another id's when its calls are complete
 * -DAGAIN            afterwards another communicator has the lanes' memory, with an empty board; numbers go on
 * -DIDLE             the plans of id 1 have no work for the last rank
 * -DABORT, -DDEATH   the communicator fails at any time; the last rank dies at any time, also with the lock
 *
 * -DBREAK_AGREED     the first rank that makes a call puts it into the order
 * -DBREAK_CHANGE     a call comes into the order although the one before is not complete, in another lane: ranks wait for that when they are there
 * -DBREAK_BESIDE     nor do they then
 * -DBREAK_COUNTS     a record's calls are counted anew for each id
 * -DBREAK_COUNTED    a call counts as ordered before the tail is moved, which a rank that dies leaves so
 * -DBREAK_DONE       nobody says what is complete because something on the board waits for it
 * -DBREAK_END        a call in the order of a stream enters before its rank has followed the order to its end
 * -DBREAK_HOLD       its lane is not held
 * -DBREAK_IDLE       a rank goes past a call that has no work for it
 * -DBREAK_LOCK       there is no lock
 * -DBREAK_OWNER      who wants the lock does not look whether its owner is dead
 * -DBREAK_PASS       a rank goes past what has no room
 * -DBREAK_PLACE      a place is overwritten that a rank has not gone past
 * -DBREAK_REFUSED    whose call in the order of a stream is refused does not look whether a rank is dead
 * -DBREAK_RESTART    numbers of the next communicator begin anew
 * -DBREAK_TAIL       the tail is moved before the place is written
 * -DBREAK_UNTIL      a held lane is free when all ranks have made its calls
 * -DBREAK_UNORDERED  who waits for a call that all have made, and that is not in the order, does not look whether a rank is dead
 */
#ifndef N
#define N 2
#endif
#ifndef IDS
#define IDS 2
#endif
#ifndef CALLS
#define CALLS 2
#endif
#ifndef LANES
#define LANES 1 /* of a kernel */
#endif
#ifndef KERNELS
#define KERNELS 1
#endif
#ifndef WINDOW
#define WINDOW 1 /* places */
#endif
#ifndef AHEAD
#define AHEAD 1 /* calls of a record that some rank has made and that are not in the order */
#endif
#ifndef PLACES
#define PLACES 2 /* of the order */
#endif
#ifndef RECORDS
#define RECORDS IDS
#endif
#ifndef EARLY
#define EARLY 0
#endif
#ifdef AGAIN
#define COMMUNICATORS 2
#else
#define COMMUNICATORS 1
#endif
#define ALL_LANES (KERNELS * LANES)
#define OCCURRENCES (IDS * CALLS)
#define NONE 255

/* A call of an id, the same on all ranks: an occurrence. */
#define OF(id, k) ((id) * CALLS + (k))
#define ID(o) ((o) / CALLS)
#define KERNEL(o) ((o) % CALLS % KERNELS)
#ifdef GATE
#define IS_EARLY(r, id) ((EARLY >> ((r) * IDS + (id))) & 1 && ranks[r].seq[id].started == 0)
#else
#define IS_EARLY(r, id) ((EARLY >> ((r) * IDS + (id))) & 1)
#endif
#ifdef IDLE
#define HAS_WORK(r, o) ((r) != N - 1 || ID(o) != 1)
#else
#define HAS_WORK(r, o) true
#endif

/* The board. */
byte lock; /* 1 + its owner */
typedef Record {
  byte id; /* 1 + */
  byte made[N], done[N];
  byte numbered, ordered;
  byte numberedIn, orderedIn; /* 1 + the lane */
  bit isHeldUp;
  byte occurrence[AHEAD], lane[AHEAD], number[AHEAD] /* of its calls */
};
Record records[RECORDS];
typedef Lane { byte next, holder, until }; /* the holder: 1 + the record */
Lane lanes[ALL_LANES];
typedef Place { byte record, call, lane, number };
Place order[PLACES];
byte tail, read[N];
bit wanted; /* somebody lacks a lane or a record */

/* What each rank knows of its ids. */
typedef Sequence {
  byte started, made, executed; /* of the id's calls */
  byte record;                  /* 1 + where its last call was made */
  byte counted;                 /* calls of the record that are executed here */
  byte last                     /* 1 + the lane of the call that was executed last */
};
typedef Known { Sequence seq[IDS]; byte byRecord[RECORDS]; byte insists };
Known ranks[N];
typedef Name { byte record, call };
Name names[OCCURRENCES]; /* of what is made */

/* Devices: what is in the windows, and the lanes' memory. */
#define ENTERED 1
#define BEGUN 2
#define COMPLETE 3
typedef Window { byte at[WINDOW]; byte count }; /* 1 + an occurrence */
typedef Board { byte state[OCCURRENCES]; byte entered[ALL_LANES], completed[ALL_LANES]; Window window[KERNELS] };
Board devices[N];
typedef Words { byte from[N] };
Words begun[ALL_LANES]; /* the largest number + 1 that a rank has begun */
byte first[ALL_LANES];  /* of the communicator's first call */
typedef Met { byte lane, number };
Met met[OCCURRENCES]; /* 1 + the lane, of what a rank has entered */

byte communicator; /* that under way */
byte departed, ended;
bit failed;
bit dead[N];

#if N == 2
#define ALL(x) (x(0) && x(1))
#else
#define ALL(x) (x(0) && x(1) && x(2))
#endif
#if IDS == 1
#define ANY_ID(x) x(0)
#elif IDS == 2
#define ANY_ID(x) (x(0) || x(1))
#else
#define ANY_ID(x) (x(0) || x(1) || x(2))
#endif
#if LANES == 1
#define ANY_LANE(x, kernel) x(kernel)
#else
#define ANY_LANE(x, kernel) (x((kernel) * 2) || x((kernel) * 2 + 1))
#endif
#if N == 2
#define LEAST_IS(field, q, v) (records[q].field[0] >= (v) && records[q].field[1] >= (v))
#else
#define LEAST_IS(field, q, v) (records[q].field[0] >= (v) && records[q].field[1] >= (v) && records[q].field[2] >= (v))
#endif
#ifdef BREAK_AGREED
#if N == 2
#define MADE_BY_ALL(q) (records[q].made[0] > records[q].ordered || records[q].made[1] > records[q].ordered)
#else
#define MADE_BY_ALL(q) (records[q].made[0] > records[q].ordered || records[q].made[1] > records[q].ordered || records[q].made[2] > records[q].ordered)
#endif
#else
#define MADE_BY_ALL(q) LEAST_IS(made, q, records[q].ordered + 1)
#endif

/* Without the lock anybody may be in the middle of something. */
#ifdef BREAK_LOCK
#define IS_OPEN true
#else
#define IS_OPEN (lock == 0)
#endif

/* Records: LaneTable::isIdle, LaneTable::find. */
#if N == 2
#define MADE_ALIKE(q) (records[q].made[0] == records[q].ordered && records[q].made[1] == records[q].ordered)
#else
#define MADE_ALIKE(q) (records[q].made[0] == records[q].ordered && records[q].made[1] == records[q].ordered && records[q].made[2] == records[q].ordered)
#endif
#define IS_IDLE(q) (MADE_ALIKE(q) && LEAST_IS(done, q, records[q].ordered))
#if RECORDS == 1
#define FOUND(i) (records[0].id == (i) + 1 -> 1 : 0)
#define UNUSED (IS_IDLE(0) -> 1 : 0)
#elif RECORDS == 2
#define FOUND(i) (records[0].id == (i) + 1 -> 1 : (records[1].id == (i) + 1 -> 2 : 0))
#define UNUSED (records[0].id == 0 -> 1 : (records[1].id == 0 -> 2 : (IS_IDLE(0) -> 1 : (IS_IDLE(1) -> 2 : 0))))
#else
#define FOUND(i) (records[0].id == (i) + 1 -> 1 : (records[1].id == (i) + 1 -> 2 : (records[2].id == (i) + 1 -> 3 : 0)))
#define UNUSED (records[0].id == 0 -> 1 : (records[1].id == 0 -> 2 : (records[2].id == 0 -> 3 : 0)))
#endif
/* LaneTable::mayMake */
#define MAY_MAKE(q) (records[q].made[me] - records[q].ordered < AHEAD)
#define CAN_MAKE(i) (FOUND(i) != 0 -> MAY_MAKE(FOUND(i) - 1) : UNUSED != 0)

/* Lanes: LaneTable::isHeldByOther, LaneTable::laneToStayIn. */
#ifdef BREAK_UNTIL
#define IS_OVER(l) LEAST_IS(made, lanes[l].holder - 1, lanes[l].until)
#else
#define IS_OVER(l) LEAST_IS(done, lanes[l].holder - 1, lanes[l].until)
#endif
#define IS_FREE(l, q) (lanes[l].holder == 0 || lanes[l].holder == (q) + 1 || IS_OVER(l))
#define STAYS(q, kernel) (records[q].numberedIn != 0 && !LEAST_IS(done, q, records[q].numbered) && \
                          (records[q].numberedIn - 1) / LANES == (kernel) && IS_FREE(records[q].numberedIn - 1, q))
#if LANES == 1
#define HAS_LANE(q, kernel) IS_FREE(kernel, q)
#else
#define HAS_LANE(q, kernel) (IS_FREE((kernel) * 2, q) || IS_FREE((kernel) * 2 + 1, q))
#endif

/* The order: LaneTable::orderNext, LaneTable::hasPlace. */
#define NEXT(q) (records[q].occurrence[records[q].ordered % AHEAD])
#define HAS_NUMBER(q) (records[q].numbered > records[q].ordered)
#define IN_TIME(q) LEAST_IS(done, q, records[q].ordered)
#ifdef BREAK_PLACE
#define HAS_PLACE true
#else
#define HAS_PASSED(r) (tail - read[r] < PLACES)
#define HAS_PLACE ALL(HAS_PASSED)
#endif
#if defined(BREAK_CHANGE) || defined(BREAK_BESIDE)
#define MAY_CHANGE(q) true
#else
#define MAY_CHANGE(q) (records[q].orderedIn == 0 || IN_TIME(q))
#endif
#define CAN_ORDER(q) (MADE_BY_ALL(q) && HAS_PLACE && \
  (HAS_NUMBER(q) -> (MAY_CHANGE(q) || records[q].orderedIn == records[q].lane[records[q].ordered % AHEAD] + 1) : \
                    (STAYS(q, KERNEL(NEXT(q))) || (MAY_CHANGE(q) && HAS_LANE(q, KERNEL(NEXT(q)))))))

/* With the lock: a lane that the rules allow, in `l`. */
inline chooseLane(q, kernel) { /* LaneTable::laneFor, LaneTable::laneToHold */
  if
  :: STAYS(q, kernel) -> l = records[q].numberedIn - 1
  :: !STAYS(q, kernel) && IS_FREE((kernel) * LANES, q) -> l = (kernel) * LANES
#if LANES == 2
  :: !STAYS(q, kernel) && IS_FREE((kernel) * LANES + 1, q) -> l = (kernel) * LANES + 1
#endif
  fi
}

inline giveNumber(q) { /* LaneTable::giveNumber */
  records[q].lane[records[q].numbered % AHEAD] = l;
  records[q].number[records[q].numbered % AHEAD] = lanes[l].next;
  lanes[l].next++;
  records[q].numberedIn = l + 1;
  records[q].numbered++
}

/* With the lock: what of the record can be in the order comes there. */
inline orderAll() { /* LaneTable::order, LaneTable::holdUp */
  do
  :: atomic { /* LaneTable::orderNext */
       CAN_ORDER(q) ->
#ifdef BREAK_TAIL
       tail++;
     }
     atomic { /* LaneTable::orderNext */
#endif
       if
       :: HAS_NUMBER(q) -> l = records[q].lane[records[q].ordered % AHEAD]
       :: !HAS_NUMBER(q) -> chooseLane(q, KERNEL(NEXT(q))); giveNumber(q)
       fi;
       records[q].orderedIn = l + 1;
#ifdef BREAK_TAIL
       p = (tail - 1) % PLACES;
#else
       p = tail % PLACES;
#endif
       order[p].record = q;
       order[p].call = records[q].ordered;
       order[p].lane = l;
       order[p].number = records[q].number[records[q].ordered % AHEAD];
#ifdef BREAK_COUNTED
       records[q].ordered++;
#endif
       l = 0; p = 0
     };
#ifndef BREAK_TAIL
     tail++;
#endif
#ifndef BREAK_COUNTED
     records[q].ordered++
#endif
  :: atomic { /* LaneTable::holdUp */
       !CAN_ORDER(q) -> records[q].isHeldUp = MADE_BY_ALL(q)
     };
     break
  od
}

#define IS_SEQUENCE_COMPLETE(i) (ranks[me].seq[i].executed == 0 || devices[me].state[OF(i, ranks[me].seq[i].executed - 1)] == COMPLETE)

inline sayDone(i) { /* LaneCalls::sayDone, LaneTable::noteDone */
  if
  :: IS_SEQUENCE_COMPLETE(i) && ranks[me].seq[i].record != 0 && ranks[me].byRecord[ranks[me].seq[i].record - 1] == i + 1 ->
    records[ranks[me].seq[i].record - 1].done[me] = ranks[me].seq[i].counted
  :: else
  fi
}

/* With the lock: its record, in `q`. */
inline findRecord(i) { /* LaneTable::findOrMake, LaneTable::unusedRecord */
  if
  :: FOUND(i) != 0 -> q = FOUND(i) - 1
  :: else ->
    q = UNUSED - 1;
    records[q].id = i + 1;
    records[q].numberedIn = 0;
    records[q].orderedIn = 0;
#ifdef BREAK_COUNTS
    records[q].numbered = 0;
    records[q].ordered = 0;
    p = 0;
    do
    :: p < N -> records[q].made[p] = 0; records[q].done[p] = 0; p++
    :: else -> break
    od;
    p = 0
#endif
  fi
}

/* With the lock: the rank makes its next call of the id. */
inline noteMade(i) { /* LaneTable::noteMade, LaneTable::mayMake, LaneCalls::noteRecord */
  o = OF(i, ranks[me].seq[i].made);
  records[q].occurrence[records[q].made[me] % AHEAD] = o;
  assert(names[o].record == 0 || (names[o].record == q + 1 && names[o].call == records[q].made[me]));
  names[o].record = q + 1;
  names[o].call = records[q].made[me];
  if
  :: ranks[me].seq[i].record != q + 1 || ranks[me].byRecord[q] != i + 1 ->
    if
    :: ranks[me].byRecord[q] != 0 -> ranks[me].seq[ranks[me].byRecord[q] - 1].record = 0
    :: else
    fi;
    ranks[me].seq[i].record = q + 1;
    ranks[me].seq[i].counted = records[q].made[me];
    ranks[me].byRecord[q] = i + 1
  :: else
  fi;
  records[q].made[me]++;
  ranks[me].seq[i].made++;
  o = 0
}

/* Room for one more in the window, and nothing of the id beside it. */
#define WINDOW_OF(w) devices[me].window[w]
#define NEXT_PLACE(w) WINDOW_OF(w).at[WINDOW_OF(w).count % WINDOW]
#define HAS_ROOM(w) (NEXT_PLACE(w) == 0 || devices[me].state[NEXT_PLACE(w) - 1] == COMPLETE)
#ifdef BREAK_BESIDE
#define IS_BEHIND(i, l) true
#else
#define IS_BEHIND(i, l) (ranks[me].seq[i].last == 0 || ranks[me].seq[i].last == (l) + 1 || IS_SEQUENCE_COMPLETE(i))
#endif
#define CAN_EXECUTE(i, o, l) (HAS_ROOM(KERNEL(o)) && IS_BEHIND(i, l))

/* The rank enters an occurrence. */
inline execute(xi, xo, xl, xn) { /* LaneCalls::execute, LaneCalls::noteExecuted */
  /* All meet in it, and in nothing else. */
  assert(met[xo].lane == 0 || (met[xo].lane == xl + 1 && met[xo].number == xn));
  met[xo].lane = xl + 1;
  met[xo].number = xn;
  p = 0;
  do
  :: p < OCCURRENCES -> assert(p == xo || met[p].lane != xl + 1 || met[p].number != xn); p++
  :: else -> break
  od;
  p = 0;
  /* Numbers of a lane come one after the other. */
  assert(xn == devices[me].entered[xl]);
  devices[me].entered[xl]++;
  /* Calls of an id do, too; in the lane, by their numbers. */
  assert(xo == OF(xi, ranks[me].seq[xi].executed));
  assert(ranks[me].seq[xi].last == 0 || ranks[me].seq[xi].last == xl + 1 || IS_SEQUENCE_COMPLETE(xi));
  NEXT_PLACE(KERNEL(xo)) = xo + 1;
  WINDOW_OF(KERNEL(xo)).count++;
  devices[me].state[xo] = ENTERED;
  ranks[me].seq[xi].executed++;
  ranks[me].seq[xi].last = xl + 1;
  ranks[me].seq[xi].counted = names[xo].call + 1
}

/* What the rank has not gone past: the first of it. */
#define HAS_NEXT (read[me] != tail)
#define HERE order[read[me] % PLACES]
#define ITS_ID (ranks[me].byRecord[HERE.record])
#define FRONT OF(ITS_ID - 1, ranks[me].seq[ITS_ID - 1].executed)
#define IS_ITS (ITS_ID != 0 && ranks[me].seq[ITS_ID - 1].made > ranks[me].seq[ITS_ID - 1].executed && \
                names[FRONT].record == HERE.record + 1 && names[FRONT].call == HERE.call)
#ifdef BREAK_IDLE
#define IS_MINE (IS_ITS && (me != N - 1 || ITS_ID != 2))
#elif defined(BREAK_PASS)
#define IS_MINE (IS_ITS && CAN_EXECUTE(ITS_ID - 1, FRONT, HERE.lane))
#else
#define IS_MINE IS_ITS
#endif
#ifdef BREAK_PASS
#define CAN_FOLLOW true
#else
#define CAN_FOLLOW (!IS_MINE || CAN_EXECUTE(ITS_ID - 1, FRONT, HERE.lane))
#endif

/* A call that enters early: LaneTable::makeEarly. */
#ifdef BREAK_END
#define IS_AT_END true
#else
#define IS_AT_END (!HAS_NEXT)
#endif
#define EARLY_ONE(i) OF(i, ranks[me].seq[i].made)
#define EARLY_KNOWN(i, q) records[q].lane[records[q].made[me] % AHEAD]
#define EARLY_ENTERS(l, i) CAN_EXECUTE(i, EARLY_ONE(i), l)
#if LANES == 1
#define CAN_HOLD(i, q) (IS_FREE(KERNEL(EARLY_ONE(i)), q) && EARLY_ENTERS(KERNEL(EARLY_ONE(i)), i))
#else
#define CAN_HOLD(i, q) (STAYS(q, KERNEL(EARLY_ONE(i))) -> EARLY_ENTERS(records[q].numberedIn - 1, i) : \
  (HAS_LANE(q, KERNEL(EARLY_ONE(i))) && HAS_ROOM(KERNEL(EARLY_ONE(i))) && IS_SEQUENCE_COMPLETE(i)))
#endif
#define CAN_ENTER_IN(i, q) (MAY_MAKE(q) && records[q].numbered >= records[q].made[me] && \
  (records[q].numbered > records[q].made[me] -> EARLY_ENTERS(EARLY_KNOWN(i, q), i) : CAN_HOLD(i, q)))
#define CAN_ENTER(i) (IS_AT_END && ranks[me].seq[i].made == ranks[me].seq[i].executed && \
  (FOUND(i) != 0 -> CAN_ENTER_IN(i, FOUND(i) - 1) : (UNUSED != 0 && HAS_LANE(UNUSED - 1, KERNEL(EARLY_ONE(i))) && \
    HAS_ROOM(KERNEL(EARLY_ONE(i))) && IS_SEQUENCE_COMPLETE(i))))

/* With the lock: it enters, in a lane that is held for its id until it is complete on all ranks. */
inline enterEarly(i) { /* LaneCalls::tryEarly, LaneTable::makeEarly */
  if
  :: records[q].numbered > records[q].made[me] ->
    l = EARLY_KNOWN(i, q);
    number = records[q].number[records[q].made[me] % AHEAD]
  :: else ->
    chooseLane(q, KERNEL(EARLY_ONE(i)));
    number = lanes[l].next;
#ifndef BREAK_HOLD
    if
    :: lanes[l].holder != 0 && IS_OVER(l) -> lanes[l].holder = 0
    :: else
    fi;
    lanes[l].holder = q + 1;
    lanes[l].until = records[q].made[me] + 1;
#endif
    giveNumber(q)
  fi;
  u = OF(i, ranks[me].seq[i].made);
  noteMade(i);
  execute(i, u, l, number);
  ranks[me].seq[i].started++;
  ranks[me].insists = 0;
  u = 0; l = 0; number = 0
}

#if RECORDS == 1
#define IS_ANY_HELD_UP (records[0].isHeldUp)
#elif RECORDS == 2
#define IS_ANY_HELD_UP (records[0].isHeldUp || records[1].isHeldUp)
#else
#define IS_ANY_HELD_UP (records[0].isHeldUp || records[1].isHeldUp || records[2].isHeldUp)
#endif
#define IS_WANTED (wanted || IS_ANY_HELD_UP)
#ifdef BREAK_DONE
#define CAN_SAY(i) false
#else
#define CAN_SAY(i) (IS_WANTED && ranks[me].seq[i].record != 0 && IS_SEQUENCE_COMPLETE(i) && \
                    ranks[me].byRecord[ranks[me].seq[i].record - 1] == (i) + 1 && \
                    records[ranks[me].seq[i].record - 1].done[me] != ranks[me].seq[i].counted)
#endif

/* The program's own waits, and what it may start. */
#define IS_SEQUENCE_OVER(i) (ranks[me].seq[i].started == ranks[me].seq[i].executed && IS_SEQUENCE_COMPLETE(i))
#define IS_STARTED(i) (ranks[me].seq[i].started == CALLS)
#if IDS == 1
#define IS_ALL_OVER IS_SEQUENCE_OVER(0)
#define IS_AT_THE_END (IS_ALL_OVER && IS_STARTED(0))
#elif IDS == 2
#define IS_ALL_OVER (IS_SEQUENCE_OVER(0) && IS_SEQUENCE_OVER(1))
#define IS_AT_THE_END (IS_ALL_OVER && IS_STARTED(0) && IS_STARTED(1))
#else
#define IS_ALL_OVER (IS_SEQUENCE_OVER(0) && IS_SEQUENCE_OVER(1) && IS_SEQUENCE_OVER(2))
#define IS_AT_THE_END (IS_ALL_OVER && IS_STARTED(0) && IS_STARTED(1) && IS_STARTED(2))
#endif
#ifdef WAITS
#define GOES_ON (me != 0 || IS_ALL_OVER)
#else
#define GOES_ON true
#endif
#ifdef GOES_BY
#define MAY_START(i) (ranks[me].insists != (i) + 1)
#else
#define MAY_START(i) (ranks[me].insists == 0)
#endif
#define IS_UNMADE(i) (ranks[me].seq[i].made < ranks[me].seq[i].started)

/* The last rank is dead, and this one waits for it: LaneCalls::lostPeerOf; for what was executed the daemon finds it. */
#define LAST (N - 1)
#ifdef BREAK_UNORDERED
#define IS_MISSED(q, c) (records[q].made[LAST] <= (c))
#else
#define IS_MISSED(q, c) (records[q].ordered <= (c) || records[q].made[LAST] <= (c))
#endif
#define WAITS_FOR(o) (ranks[me].seq[ID(o)].executed <= (o) % CALLS && ranks[me].seq[ID(o)].made > (o) % CALLS && \
                      IS_MISSED(names[o].record - 1, names[o].call))
#define IS_NOT_BEFORE(i) (FOUND(i) == 0 || records[FOUND(i) - 1].made[LAST] <= records[FOUND(i) - 1].made[me])
#define IS_HELD_BY_LOST(l) (lanes[l].holder != 0 && records[lanes[l].holder - 1].done[LAST] < lanes[l].until)
#ifdef BREAK_REFUSED
#define IS_REFUSED_FOR_EVER(i) false
#else
#define IS_REFUSED_FOR_EVER(i) (ranks[me].insists == (i) + 1 && IS_OPEN && (IS_NOT_BEFORE(i) || ANY_LANE(IS_HELD_BY_LOST, KERNEL(EARLY_ONE(i)))))
#endif
#define IS_RUNNING(o) (devices[me].state[o] != 0 && devices[me].state[o] != COMPLETE && devices[LAST].state[o] != COMPLETE)
#if CALLS == 1
#define IS_ANY_LOST(i) (WAITS_FOR(OF(i, 0)) || IS_RUNNING(OF(i, 0)))
#else
#define IS_ANY_LOST(i) (WAITS_FOR(OF(i, 0)) || IS_RUNNING(OF(i, 0)) || WAITS_FOR(OF(i, 1)) || IS_RUNNING(OF(i, 1)))
#endif
#define IS_LOST(i) (IS_ANY_LOST(i) || (IS_UNMADE(i) && IS_OPEN && IS_NOT_BEFORE(i)) || IS_REFUSED_FOR_EVER(i))
#define WANTS_LOCK(i) (IS_UNMADE(i) || ranks[me].insists == (i) + 1)

/* A rank is in the middle of nothing, and does something about an id. */
#define ABOUT(i) \
  :: atomic { /* ResidentRank::start, LaneCalls::enqueue */ \
       GOES_ON && MAY_START(i) && ranks[me].seq[i].started < CALLS && !IS_EARLY(me, i) -> ranks[me].seq[i].started++ } \
  :: atomic { /* ResidentRank::start, ResidentRank::insistOn */ \
       GOES_ON && ranks[me].insists == 0 && ranks[me].seq[i].started < CALLS && IS_EARLY(me, i) -> ranks[me].insists = i + 1 } \
  :: atomic { /* BoardLock::BoardLock, LaneCalls::make */ \
       IS_UNMADE(i) && IS_OPEN && CAN_MAKE(i) -> lock = me + 1; sayDone(i); findRecord(i); noteMade(i) }; \
     orderMade() \
  :: atomic { /* BoardLock::BoardLock, LaneCalls::tryEarly */ \
       ranks[me].insists == i + 1 && IS_OPEN && CAN_ENTER(i) -> lock = me + 1; sayDone(i); findRecord(i); enterEarly(i) }; \
     orderMade() \
  :: atomic { /* LaneTable::unusedRecord, LaneTable::laneFor */ \
       !wanted && IS_OPEN && ((IS_UNMADE(i) && !CAN_MAKE(i)) || (ranks[me].insists == i + 1 && !CAN_ENTER(i))) -> wanted = 1 } \
  :: atomic { /* LaneCalls::sayAllDone */ \
       CAN_SAY(i) -> sayDone(i) }

/* ... about a record. */
#define ABOUT_RECORD(r) \
  :: atomic { /* BoardLock::BoardLock, LaneTable::orderHeldUp */ \
       IS_OPEN && records[r].isHeldUp && CAN_ORDER(r) -> lock = me + 1; records[r].isHeldUp = 0; q = r }; \
     orderAll(); \
     unlock()

inline unlock() { /* BoardLock::~BoardLock */
  atomic { /* BoardLock::~BoardLock */
    q = 0;
    lock = 0
  }
}

inline orderMade() { /* LaneTable::noteMade */
  if
  :: records[q].isHeldUp || !MADE_BY_ALL(q)
  :: else -> orderAll()
  fi;
  unlock()
}

/* The next communicator finds the memory of lanes as it is, and a board without calls. */
inline depart() { /* ResidentRank::~ResidentRank */
  d_step { /* none: each communicator has a board of its own */
    departed++;
    if
    :: departed < N || communicator + 1 == COMMUNICATORS
    :: else ->
      departed = 0;
      communicator++;
      p = 0;
      do
      :: p < ALL_LANES ->
#ifndef BREAK_RESTART
        first[p] = first[p] + lanes[p].next;
#endif
        lanes[p].next = 0; lanes[p].holder = 0; lanes[p].until = 0;
        q = 0;
        do
        :: q < N -> devices[q].entered[p] = 0; devices[q].completed[p] = 0; q++
        :: else -> break
        od;
        p++
      :: else -> break
      od;
      p = 0;
      do
      :: p < RECORDS ->
        records[p].id = 0; records[p].numbered = 0; records[p].ordered = 0; records[p].numberedIn = 0; records[p].orderedIn = 0;
        q = 0;
        do
        :: q < N -> records[p].made[q] = 0; records[p].done[q] = 0; ranks[q].byRecord[p] = 0; q++
        :: else -> break
        od;
        p++
      :: else -> break
      od;
      p = 0;
      do
      :: p < OCCURRENCES ->
        names[p].record = 0; names[p].call = 0; met[p].lane = 0; met[p].number = 0;
        q = 0;
        do
        :: q < N ->
          devices[q].state[p] = 0;
          ranks[q].seq[ID(p)].started = 0; ranks[q].seq[ID(p)].made = 0; ranks[q].seq[ID(p)].executed = 0;
          ranks[q].seq[ID(p)].record = 0; ranks[q].seq[ID(p)].counted = 0; ranks[q].seq[ID(p)].last = 0;
          q++
        :: else -> break
        od;
        p++
      :: else -> break
      od;
      q = 0;
      do
      :: q < N ->
        read[q] = 0;
        p = 0;
        do
        :: p < WINDOW * KERNELS -> devices[q].window[p / WINDOW].at[p % WINDOW] = 0; devices[q].window[p / WINDOW].count = 0; p++
        :: else -> break
        od;
        q++
      :: else -> break
      od;
      tail = 0; wanted = 0; p = 0; q = 0
    fi
  }
}

proctype Rank(byte me) { /* ResidentRank::start, ResidentRank::advance, LaneCalls::advance */
  byte q, l, p, o, u, number, c;
  {
    do
    :: c < COMMUNICATORS ->
      do
      ABOUT(0)
#if IDS > 1
      ABOUT(1)
#endif
#if IDS > 2
      ABOUT(2)
#endif
      ABOUT_RECORD(0)
#if RECORDS > 1
      ABOUT_RECORD(1)
#endif
#if RECORDS > 2
      ABOUT_RECORD(2)
#endif
      :: atomic { /* LaneCalls::follow, LaneTable::next, LaneTable::pass */
           HAS_NEXT && CAN_FOLLOW ->
           if
           :: IS_MINE -> u = FRONT; execute(ID(u), u, HERE.lane, HERE.number)
           :: else
           fi;
           u = 0;
           read[me]++
         }
#ifdef DEATH
#ifndef BREAK_OWNER
      :: lock != 0 && dead[LAST] && lock == LAST + 1 && (ANY_ID(WANTS_LOCK) || IS_ANY_HELD_UP) -> failed = 1
#endif
      :: dead[LAST] && ANY_ID(IS_LOST) -> failed = 1
#endif
      :: failed || IS_AT_THE_END -> break
      od;
      if
      :: failed -> break
      :: else ->
        depart();
        c++;
        if
        :: communicator >= c || c == COMMUNICATORS
        :: failed
        fi
      fi
    :: else -> break
    od
  } unless {
    dead[me]
  }
  ended++
}

/* A call begins when the one before it in its lane is complete here, and is complete when all have begun it. */
#define ITS_LANE(o) (met[o].lane - 1)
#define ORDINAL(o) (first[ITS_LANE(o)] + met[o].number + 1)
#define HAS_WORD(r) (begun[ITS_LANE(o)].from[r] >= ORDINAL(o))
#ifdef GATE
#define IS_GATE_OPEN(o) (me != 0 || (o) != OF(0, 0) || devices[0].state[OF(1, 0)] == COMPLETE)
#else
#define IS_GATE_OPEN(o) true
#endif
#if N == 2
#define HAVE_ALL_WORDS(o) (begun[ITS_LANE(o)].from[0] >= ORDINAL(o) && begun[ITS_LANE(o)].from[1] >= ORDINAL(o))
#define HAVE_ALL_BEGUN(o) (devices[0].state[o] >= BEGUN && devices[1].state[o] >= BEGUN)
#else
#define HAVE_ALL_WORDS(o) (begun[ITS_LANE(o)].from[0] >= ORDINAL(o) && begun[ITS_LANE(o)].from[1] >= ORDINAL(o) && begun[ITS_LANE(o)].from[2] >= ORDINAL(o))
#define HAVE_ALL_BEGUN(o) (devices[0].state[o] >= BEGUN && devices[1].state[o] >= BEGUN && devices[2].state[o] >= BEGUN)
#endif
#define STEPS(o) \
  :: d_step { /* announceBegin */ \
       devices[me].state[o] == ENTERED && devices[me].completed[ITS_LANE(o)] == met[o].number && IS_GATE_OPEN(o) -> \
       devices[me].state[o] = BEGUN; \
       begun[ITS_LANE(o)].from[me] = ORDINAL(o) } \
  :: d_step { /* ResidentDaemon::isComplete */ \
       devices[me].state[o] == BEGUN && (HAVE_ALL_WORDS(o) || !HAS_WORK(me, o)) -> \
       assert(HAVE_ALL_BEGUN(o) || !HAS_WORK(me, o)); \
       devices[me].state[o] = COMPLETE; \
       devices[me].completed[ITS_LANE(o)]++ }

proctype Device(byte me) { /* WarpRunner::clearBefore */
  {
end:
    do
    STEPS(0)
    STEPS(1)
#if OCCURRENCES > 2
    STEPS(2)
#endif
#if OCCURRENCES > 3
    STEPS(3)
#endif
#if OCCURRENCES > 4
    STEPS(4)
    STEPS(5)
#endif
    od
  } unless {
    dead[me]
  }
}

#ifdef ABORT
active proctype Abort() { /* Fabric::fail */
  failed = 1
}
#endif
#ifdef DEATH
active proctype Death() { /* none: the process is killed */
  dead[LAST] = 1
}
#endif

init {
  byte i;
  atomic {
    do
    :: i < N -> run Rank(i); run Device(i); i++
    :: else -> break
    od;
    i = 0
  }
}

ltl everybodyEnds { <> (ended == N) }
