/* Ranks that access each other's user buffers (docs/progress.md), with and without failure. A rank's program fills a
 * buffer, submits, and may do with its buffers what it likes once the call has returned, whether the invocation has
 * ended well or not. Executors take the steps of open invocations in any order.
 *
 * Ranks stand in a ring. Each takes what is in the buffer of the next one, stores it to its output, and passes that on:
 * what a rank ends with has come over two others.
 * By reference: a rank refers the one before to its buffer, receives, and ends when that one has consumed it all.
 * -DDIRECT: it reads the next one's buffer once that one has begun the invocation, and ends when it has been signalled.
 * -DSTORE: instead, each stores what it has to the output of the next one, once that one has begun, and signals.
 *
 * -DFAILURE: at any time, in any order, the ranks' failure words are set: by ranks that see a deadline pass, are told to
 * abort, or pass on what they have heard, and may stop between two words. A rank whose own word is set gives its
 * program the buffers back. With -DSTORE ranks may be killed, too.
 *
 * -DBREAK_DRAIN   an invocation ends without waiting for who was referred to its buffer (or for the signal)
 * -DBREAK_ORDER   it waits for that before it receives
 * -DBREAK_BEGUN   the peer's buffer is accessed whether or not the peer has begun the invocation
 * -DBREAK_CHECK   who has read does not look whether the source has failed
 * -DBREAK_OWN     it looks at its own rank's word instead
 * -DBREAK_EARLY   it looks at the source's word before it reads
 * -DBREAK_CLAIM   a failed invocation ends while a step of it is carried out
 * -DBREAK_ACCESS  a failed rank does not wait for who stores to its buffers
 * -DBREAK_SPREAD  it waits, but for ranks that may not know of the failure yet
 * -DBREAK_BEGIN   who stores looks whether it has failed before it says that it is about to store
 */
#ifndef RANKS
#define RANKS 2
#endif
#ifndef COLLECTIVES
#define COLLECTIVES 2
#endif
#ifndef TIMES
#define TIMES 3
#endif
#define NOTHING 255
#define ALL (RANKS * COLLECTIVES)

#define MINE (r * COLLECTIVES + c)
#define NEXT ((r + 1) % RANKS)
#define THEIRS (NEXT * COLLECTIVES + c)
#define BEFORE ((r + RANKS - 1) % RANKS)
#define AT(stage, x) ((stage) * ALL + (x))

mtype = { Idle, Begun, Sent, Reading, Checking, Entering, Storing, Done, Settling, Failed };
mtype phase[ALL] = Idle;
byte ordinal[ALL];
byte held[2 * ALL] = NOTHING; /* the invocation whose data the buffer (stage 0), the output (1) has */
bool isUsers[ALL] = true;     /* both are the program's */
byte begun[ALL], referred[2 * ALL], consumed[2 * ALL], stored[ALL];
byte accessing[RANKS];
bool failed[RANKS], dead[RANKS];
byte ended;

#if defined(BREAK_BEGUN)
#define HAS_BEGUN true
#else
#define HAS_BEGUN (begun[THEIRS] > ordinal[MINE])
#endif
#ifdef DIRECT
#define MAY_READ (stage == 0 -> HAS_BEGUN : referred[AT(1, THEIRS)] > ordinal[MINE])
#else
#define MAY_READ (referred[AT(stage, THEIRS)] > ordinal[MINE])
#endif
#ifdef BREAK_DRAIN
#define IS_DRAINED true
#else
#define IS_DRAINED (consumed[AT(0, MINE)] > ordinal[MINE] && consumed[AT(1, MINE)] > ordinal[MINE])
#endif
#ifdef BREAK_ORDER
#define MAY_RECEIVE (MAY_READ && consumed[AT(0, MINE)] > ordinal[MINE])
#else
#define MAY_RECEIVE MAY_READ
#endif

/* What tells after a read that the source may have given up what was read. */
#if defined(BREAK_CHECK)
#define SOURCE_FAILED false
#elif defined(BREAK_OWN)
#define SOURCE_FAILED failed[r]
#elif defined(BREAK_EARLY)
#define SOURCE_FAILED seen
#else
#define SOURCE_FAILED failed[NEXT]
#endif

#define IS_CLAIMED                                                                                                     \
  (phase[MINE] == Reading || phase[MINE] == Checking || phase[MINE] == Entering || phase[MINE] == Storing)
#define IS_OPEN (phase[MINE] != Idle && phase[MINE] != Settling && phase[MINE] != Failed)

inline read() { /* StepDriver::foldPiece */
  isRight = isRight && held[AT(stage, THEIRS)] == ordinal[MINE]
}

inline giveBack() { /* Core::finish */
  held[AT(0, MINE)] = NOTHING;
  held[AT(1, MINE)] = NOTHING;
  isUsers[MINE] = true
}

inline complete() { /* Executor::complete */
  giveBack();
  ordinal[MINE]++;
  phase[MINE] = Idle
}

/* The steps of one collective on one rank, each when it can be; the others' come in between as they like. */
proctype Steps(byte r, c) { /* Executor::visitClaimed */
  bool isRight, seen;
  byte stage;
  do
  :: dead[r] -> break
  :: atomic { /* Admission::submit, TaskBoard::start, publishBegun */
      !dead[r] && phase[MINE] == Idle && ordinal[MINE] < TIMES && !failed[r] ->
      isUsers[MINE] = false;
      held[AT(0, MINE)] = ordinal[MINE]; /* the program's */
      begun[MINE] = ordinal[MINE] + 1;
      isRight = true;
      stage = 0;
      phase[MINE] = Begun
    }
#ifdef STORE
#ifdef BREAK_BEGIN
  :: atomic { /* Fabric::failed */ !dead[r] && phase[MINE] == Begun && HAS_BEGUN && !failed[r] -> phase[MINE] = Entering }
  :: atomic { /* none: -DBREAK_BEGIN */ !dead[r] && phase[MINE] == Entering -> accessing[r]++; phase[MINE] = Storing }
#else
  :: atomic { /* StepDriver::arrived, Fabric::beginAccess */ !dead[r] && phase[MINE] == Begun && HAS_BEGUN -> accessing[r]++; phase[MINE] = Entering }
  :: atomic { /* Fabric::beginAccess, Fabric::endAccess */
      !dead[r] && phase[MINE] == Entering ->
      if
      :: failed[r] -> accessing[r]--; phase[MINE] = Begun
      :: else -> phase[MINE] = Storing
      fi
    }
#endif
  :: atomic { /* StepDriver::executeSlice */
      !dead[r] && phase[MINE] == Storing && !isUsers[THEIRS] && held[AT(1, THEIRS)] != ordinal[MINE] ->
      held[AT(1, THEIRS)] = ordinal[MINE] /* the first half */
    }
  :: atomic { /* StepDriver::executeSlice, StepDriver::publish, Fabric::endAccess */
      !dead[r] && phase[MINE] == Storing && (isUsers[THEIRS] || held[AT(1, THEIRS)] == ordinal[MINE]) ->
      assert(!isUsers[THEIRS]); /* the other half */
      stored[THEIRS] = ordinal[MINE] + 1;
      accessing[r]--;
      phase[MINE] = Done
    }
  :: atomic { /* StepDriver::arrived, TaskBoard::release */
      !dead[r] && phase[MINE] == Done && stored[MINE] > ordinal[MINE] ->
      assert(held[AT(1, MINE)] == ordinal[MINE]);
      complete()
    }
#else
  :: atomic { /* StepDriver::publish, StepDriver::referenceOfSlice */
      phase[MINE] == Begun && !failed[r] ->
      referred[AT(0, MINE)] = ordinal[MINE] + 1;
      phase[MINE] = Sent
    }
  :: atomic { /* StepDriver::arrived, StepDriver::followReference, PeerMemory::read */
      phase[MINE] == Sent && !failed[r] && MAY_RECEIVE ->
      seen = failed[NEXT];
      read(); /* the first half */
      phase[MINE] = Reading
    }
  :: atomic { /* PeerMemory::read, StepDriver::foldPiece */
      phase[MINE] == Reading ->
      read(); /* the other half */
      assert(!isUsers[MINE]);
      phase[MINE] = Checking
    }
  :: atomic { /* StepDriver::sourcesWereKept, PeerMemory::mayHaveChanged, StepDriver::publish, Executor::run */
      phase[MINE] == Checking ->
      if
      :: SOURCE_FAILED -> failed[r] = true; phase[MINE] = Sent
      :: else ->
        consumed[AT(stage, THEIRS)] = ordinal[MINE] + 1;
        if
        :: stage == 0 ->
          held[AT(1, MINE)] = (isRight -> ordinal[MINE] : NOTHING);
          referred[AT(1, MINE)] = ordinal[MINE] + 1;
          stage = 1;
          phase[MINE] = Sent
        :: else -> phase[MINE] = Done
        fi
      fi
    }
  :: atomic { /* StepDriver::pollDrains, TaskBoard::release */
      phase[MINE] == Done && IS_DRAINED -> /* whether or not the rank has failed meanwhile */
      assert(isRight);
      complete()
    }
#endif
#ifdef FAILURE
#ifdef BREAK_CLAIM
  :: atomic { /* none: -DBREAK_CLAIM */ failed[r] && IS_CLAIMED && !isUsers[MINE] -> giveBack() }
#endif
  :: atomic { /* Executor::visitClaimed, TaskBoard::stop */ !dead[r] && failed[r] && IS_OPEN && !IS_CLAIMED -> phase[MINE] = Settling }
#if defined(STORE) && !defined(BREAK_ACCESS)
#ifndef BREAK_SPREAD
  :: atomic { /* Core::areBuffersAccessed, Fabric::spreadFailureOf */ !dead[r] && phase[MINE] == Settling && !failed[BEFORE] -> failed[BEFORE] = true }
#define KNOWS failed[BEFORE]
#else
#define KNOWS true
#endif
#define IS_FREE (KNOWS && (accessing[BEFORE] == 0 || dead[BEFORE]))
#else
#define IS_FREE true
#endif
  :: atomic { /* Core::areBuffersAccessed, Fabric::isAccessing, TaskBoard::abandon, Core::finish */ !dead[r] && phase[MINE] == Settling && IS_FREE -> giveBack(); phase[MINE] = Failed }
  :: phase[MINE] == Failed -> break
  :: phase[MINE] == Idle && failed[r] -> break
#endif
  :: phase[MINE] == Idle && ordinal[MINE] == TIMES -> break
  od;
  ended++
}

#ifdef FAILURE
/* Sets any word at any time; sooner or later all, as deadlines pass. */
proctype Failure() { /* none: any rank at any time */
end:
  do
  :: atomic { /* Fabric::fail, Fabric::tell */ !failed[0] -> failed[0] = true }
  :: atomic { /* Fabric::fail, Fabric::tell */ !failed[1] -> failed[1] = true }
  :: atomic { /* Fabric::fail, Fabric::tell */ !failed[RANKS - 1] -> failed[RANKS - 1] = true }
#ifdef STORE
  :: atomic { /* Fabric::isDead */ !dead[0] -> dead[0] = true }
  :: atomic { /* Fabric::isDead */ !dead[1] -> dead[1] = true }
  :: atomic { /* Fabric::isDead */ !dead[RANKS - 1] -> dead[RANKS - 1] = true }
#endif
  od
}
#endif

init {
  byte r, c;
  atomic {
    for (r : 0 .. RANKS - 1) {
      for (c : 0 .. COLLECTIVES - 1) {
        run Steps(r, c)
      }
    }
#ifdef FAILURE
    run Failure()
#endif
  }
}

ltl everybodyEnds { <> (ended == ALL) }
