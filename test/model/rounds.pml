/* A partitioned all-reduce of two ranks in two rounds (docs/decisions/hosts/partitioned-collectives.md).
 *
 * Input and output have three partitions of two elements, a round three elements: so the middle partition is of both. A round is a
 * task of two steps: it sends what is in the input, and stores the sum of that and of what has come. The executors of a rank, EXECUTORS, take any
 * step whose conditions hold. A thread of the program marks partitions 1 and 2 in any order, and partition 0 once partition 2 of the
 * output has arrived, from which it is computed; another one (but for ABORT) marks partition 2 twice, and may be held up at that since
 * the last epoch. Of EPOCHS a rank may be one ahead. An input that is the program's shows as GARBAGE.
 *
 * -DABORT  each rank fails at any time, one after the other
 *
 * -DBREAK_GATE   a step does not look whether what it reads has been marked
 * -DBREAK_EPOCH  it looks whether that has been marked in some epoch
 * -DBREAK_ROUNDS it looks at all partitions, as steps of a plan that is not in rounds do
 * -DBREAK_ORDER  a rank executes its rounds one after the other
 * -DBREAK_SUM    a partition arrives with the first store to it
 * -DBREAK_ADD    the sum of what is stored is read and then stored
 * -DBREAK_CAS    a mark is made whether or not it was made before
 * -DBREAK_SETTLE  a failed wait returns, and the input is the program's, while an executor is at a step
 * -DBREAK_END    an epoch ends though a call that marks has not counted yet
 */
#ifndef EPOCHS
#define EPOCHS 1
#endif
#ifndef EXECUTORS
#define EXECUTORS 2
#endif
#define P 3
#define GARBAGE 255
#define VALUE(r, e, p) (100 * (r) + 10 * (e) + (p))
#define AT(r, p) (3 * (r) + (p))
#define TASK(r, i) (2 * (r) + (i))

byte marked[6], marks[2]; /* by partition of the input: the epoch; all marks of all epochs */
byte sums[6];             /* by partition of the output: elements that were stored, in all epochs */
byte input[6] = GARBAGE;
byte stage[4];   /* by task: steps of its epoch that were carried out */
bool claimed[4]; /* by an executor */
byte stored[4];  /* the last epoch whose sum it has stored */
byte epoch[2];   /* that its program has started */
bool isOpen[2], ended[2], lateEnded[2], failed[2];
bool isTaken[2]; /* the input is the program's again, after a failure: nobody reads it any more */
/* From each rank, by round: the connection's ring, with room for one message. */
chan sent[4] = [1] of { byte };

#ifdef BREAK_CAS
#define IS_NEW(p) true
#else
#define IS_NEW(p) (marked[AT(r, p)] < e)
#endif

inline mark(p) { /* PartitionedCollectives::mark, CollectiveParts::mark, CollectiveParts::count */
  if
  :: failed[r]
  :: else ->
    isNew = false;
    atomic { /* CollectiveParts::mark, raise */
      if
      :: IS_NEW(p) -> marked[AT(r, p)] = e; isNew = true
      :: else
      fi
    };
    if
    :: isNew ->
      atomic { /* CollectiveParts::count */
        assert(!ended[r]); /* the request is there */
        marks[r]++
      }
    :: else
    fi
  fi
}

#ifdef BREAK_SUM
#define HAS_ARRIVED(r, q, e) (sums[AT(r, q)] > 2 * ((e) - 1))
#else
#define HAS_ARRIVED(r, q, e) (sums[AT(r, q)] == 2 * (e))
#endif

proctype Marks(byte r) { /* the program */
  byte e;
  bool isNew;
  for (e : 1 .. EPOCHS) {
    (isOpen[r] && epoch[r] == e) || failed[r];
    if
    :: failed[r] -> break
    :: else
    fi;
    if
    :: input[AT(r, 1)] = VALUE(r, e, 1); mark(1); input[AT(r, 2)] = VALUE(r, e, 2); mark(2)
    :: input[AT(r, 2)] = VALUE(r, e, 2); mark(2); input[AT(r, 1)] = VALUE(r, e, 1); mark(1)
    fi;
    HAS_ARRIVED(r, 2, e) || failed[r]; /* a loop of PartitionedCollectives::arrived */
    input[AT(r, 0)] = VALUE(r, e, 0);
    mark(0)
  }
}

proctype Late(byte r) { /* the program */
  byte e;
  bool isNew;
  if
  :: atomic { /* the program */ isOpen[r] && marked[AT(r, 2)] == epoch[r] -> e = epoch[r] };
    mark(2)
  :: ended[r]
  fi;
  lateEnded[r] = true
}

#if defined(BREAK_GATE)
#define IS_READY(r, p) true
#elif defined(BREAK_EPOCH)
#define IS_READY(r, p) (marked[AT(r, p)] != 0)
#else
#define IS_READY(r, p) (marked[AT(r, p)] >= epoch[r])
#endif
#ifdef BREAK_ROUNDS
#define IS_OPEN(r, i) (IS_READY(r, 0) && IS_READY(r, 1) && IS_READY(r, 2))
#else
#define IS_OPEN(r, i) (IS_READY(r, 1) && IS_READY(r, 2 * (i)))
#endif
#ifdef BREAK_ORDER
#define HAS_TURN(r, i) ((i) == 0 || stage[TASK(r, 0)] == 2)
#else
#define HAS_TURN(r, i) true
#endif
#define MAY_RUN(r, i) (isOpen[r] && !claimed[TASK(r, i)] && HAS_TURN(r, i) && IS_OPEN(r, i))
#define CAN_SEND(r, i) (MAY_RUN(r, i) && stage[TASK(r, i)] == 0 && nfull(sent[TASK(r, i)]))
#define CAN_STORE(r, i) (MAY_RUN(r, i) && stage[TASK(r, i)] == 1 && nempty(sent[TASK(1 - r, i)]))

inline readInput(p) { /* StepDriver::step */
  assert(!isTaken[r] && input[AT(r, p)] == VALUE(r, epoch[r], p))
}

inline add(q, number) { /* CollectiveParts::stored */
#ifdef BREAK_ADD
  sum = sums[AT(r, q)];
  sums[AT(r, q)] = sum + number
#else
  sums[AT(r, q)] = sums[AT(r, q)] + number
#endif
}

inline send(i) { /* StepDriver::step, StepDriver::publish */
  readInput(1);
  readInput(2 * i);
  sent[TASK(r, i)] ! epoch[r];
  atomic { /* TaskBoard::release */
    stage[TASK(r, i)] = 1;
    claimed[TASK(r, i)] = false
  }
}

inline store(i) { /* StepDriver::step, CollectiveParts::stored */
  sent[TASK(1 - r, i)] ? e;
  assert(e == epoch[r]);
  readInput(1);
  readInput(2 * i);
  stored[TASK(r, i)] = e;
  add(2 * i, 2);
  add(1, 1);
  atomic { /* TaskBoard::release */
    stage[TASK(r, i)] = 2;
    claimed[TASK(r, i)] = false
  }
}

#define CLAIM(condition, i) atomic { /* TaskBoard::claim, CollectiveParts::missing */ !failed[r] && condition -> claimed[TASK(r, i)] = true }

proctype Executes(byte r) { /* Executor::visitOne */
  byte e, sum;
  do
  :: CLAIM(CAN_SEND(r, 0), 0); send(0)
  :: CLAIM(CAN_SEND(r, 1), 1); send(1)
  :: CLAIM(CAN_STORE(r, 0), 0); store(0)
  :: CLAIM(CAN_STORE(r, 1), 1); store(1)
  :: ended[r] || failed[r] -> break
  od
}

#define IS_COMPLETE (stage[TASK(r, 0)] == 2 && stage[TASK(r, 1)] == 2)
#ifdef BREAK_END
#define ARE_ALL_MARKED (marked[AT(r, 0)] >= e && marked[AT(r, 1)] >= e && marked[AT(r, 2)] >= e)
#else
#define ARE_ALL_MARKED (marks[r] == P * e)
#endif
#ifdef BREAK_SETTLE
#define IS_IDLE true
#else
#define IS_IDLE (!claimed[TASK(r, 0)] && !claimed[TASK(r, 1)])
#endif

proctype Program(byte r) { /* the program */
  byte e;
  do
  :: e < EPOCHS && !failed[r] ->
    e++;
    atomic { /* PartitionedCollectives::start, CollectiveParts::begin */
      epoch[r] = e;
      stage[TASK(r, 0)] = 0;
      stage[TASK(r, 1)] = 0;
      isOpen[r] = true
    };
    (IS_COMPLETE && ARE_ALL_MARKED) || (failed[r] && IS_IDLE); /* PartitionedCollectives::wait, Core::settleFailure */
    atomic { /* PartitionedCollectives::ended */
      isOpen[r] = false;
      if
      :: !failed[r] ->
        assert(HAS_ARRIVED(r, 0, e) && HAS_ARRIVED(r, 1, e) && HAS_ARRIVED(r, 2, e));
        input[AT(r, 0)] = GARBAGE;
        input[AT(r, 1)] = GARBAGE;
        input[AT(r, 2)] = GARBAGE
      :: else -> isTaken[r] = true /* threads may be in calls that mark */
      fi
    }
  :: else -> break
  od;
  /* PartitionedCollectives::release: no call is under way but such as have counted. After a failure threads return first. */
  if
  :: !failed[r] -> ended[r] = true
  :: else
  fi
}

/* What has arrived is stored, of all rounds that overlap it, in this epoch. */
#define HAS(r, i) (stored[TASK(r, i)] == epoch[r])
#define IS_EARLY(r, q) (isOpen[r] && HAS_ARRIVED(r, q, epoch[r]) && !(((q) == 2 || HAS(r, 0)) && ((q) == 0 || HAS(r, 1))))

proctype Asks(byte r) { /* PartitionedCollectives::arrived */
end:
  do
  :: atomic { /* CollectiveParts::hasArrived */ IS_EARLY(r, 0) || IS_EARLY(r, 1) || IS_EARLY(r, 2) -> assert(false) }
  od
}

#ifdef ABORT
proctype Abort(byte first) { /* occlCommAbort, Fabric::fail */
  failed[first] = true;
  failed[1 - first] = true
}
#endif

init {
  byte r;
  atomic {
    for (r : 0 .. 1) {
      run Program(r);
      run Marks(r);
#ifdef ABORT
      lateEnded[r] = true; /* there is none: too many states */
#else
      run Late(r);
#endif
      run Executes(r);
#if EXECUTORS > 1
      run Executes(r);
#endif
      run Asks(r)
    };
#ifdef ABORT
    run Abort(0)
#endif
  }
}

ltl everybodyEnds { <> (ended[0] && ended[1]) }
