/* The resident daemon of a device and streams that wait for it: how its executors leave, how one
 * stays as lookout while streams are held, and how the host starts the next ones. Two submissions in
 * the order of two streams; the first can move only when the second is done, as on a rank whose
 * peer's streams come the other way round.
 *
 * What is launched may be unable to begin while a stream waits that came to that before (hardware
 * queues that streams share): `roomy` says whether, for good. Time is chance: executors may find at
 * any moment that nothing has moved for long. Memory is sequentially consistent.
 *
 * In strict mode nobody stays until a stream waits, of whatever daemon; then one does, whatever is
 * open. The host tells one that need not stay any more to leave. A stream comes to wait some time after the submission was made. A stream of another daemon
 * waits for the first submission here, too, once that was made: what comes to an idle daemon while
 * a stream waits needs a launch, which may be unable to begin.
 *
 * -DPLAIN=<i>       submission i is in no stream's order
 * -DSTRICT          strict mode
 * -DE=1             one executor in each generation
 * -DBREAK_<defect>  one of the defects that README.md lists
 */
#define N 2
#ifndef E
#define E 2 /* executors of a generation */
#endif
#ifndef GENERATIONS
#define GENERATIONS 3 /* those of the last one do not leave before the end */
#endif

#ifdef PLAIN
#define IS_STREAMED(i) (i != PLAIN)
#else
#define IS_STREAMED(i) 1
#endif

#ifdef STRICT
#define STREAMS (N + 1)
#else
#define STREAMS N
#endif

bool roomy;
bool isOver; /* the program has ended */

/* The host's page. */
byte next;          /* entries */
byte quitGeneration;
byte stays[2], left[2]; /* of lookouts, by generation % 2 */
bool hasMoved[2];       /* the same */
bool isInStream[STREAMS]; /* what a stream does with it; the last: another daemon's */
bool isReached[N];      /* gates */
bool isComplete[N];
#ifdef STRICT
bool mayAllLeave, isSeenTo;
byte calledOff; /* the last generation whose lookout the host has told to leave */

/* Of all daemons: streams that wait, or will; waits that have not been taken back. */
byte numHeld;
#endif
#define WAITS(i) (isInStream[i] && !isComplete[(i) % N]) /* the last: for the first submission */

/* The host. */
byte started;
bit current;      /* the stream that the last generation was launched in */
bit streamOf[GENERATIONS + 1];
bool isBehind[STREAMS * (GENERATIONS + 1)]; /* launched after a stream was given this to wait for */

/* The board. */
byte tail;       /* entries taken in */
byte leaving;    /* the generation that is to leave */
byte begun;      /* the last generation that has */
bool isTaken;     /* the intake */
bool isOpen[N];  /* its gate was seen open */
bool hasBegun[GENERATIONS + 1];
byte present[2]; /* executors by stream of the host's */

/* What the peer has done for it. */
bool isReady[N];

#define HAS_QUIT (quitGeneration == started)
#define STAYS(g) (g != 0 && stays[(g) % 2] == g && left[(g) % 2] != g)
#define ANY_OPEN ((next > 0 && !isComplete[0]) || (next > 1 && !isComplete[1]))
#define HOLDS_STREAMS                                                                              \
  ((tail > 0 && IS_STREAMED(0) && !isComplete[0]) || (tail > 1 && IS_STREAMED(1) && !isComplete[1]))
#define HAS_LOOKOUT (STAYS(started) || (begun < started && STAYS(started - 1)))
#define CAN_RUN(i) (tail > i && isOpen[i] && isReady[i] && !isComplete[i])

/* SubmissionSide::startIfQuit, under its lock: beside a lookout, or behind the ones before. */
inline startIfQuit() { /* SubmissionSide::startIfQuit */
  atomic { /* SubmissionSide::startIfQuit, SubmissionSide::startNext */
    if
    :: HAS_QUIT ->
      if
      :: STAYS(started) -> current = 1 - current
      :: else
      fi;
      started++;
      streamOf[started] = current;
      isBehind[started * STREAMS] = isInStream[0];
      isBehind[started * STREAMS + 1] = isInStream[1]
#ifdef STRICT
      ;
      isBehind[started * STREAMS + 2] = isInStream[2]
#endif
    :: else
    fi
  }
}

#ifdef STRICT
#ifdef BREAK_DISMISSED
#define COUNTED 255 /* whoever stays counts, though it was told to leave */
#else
#define COUNTED started
#endif
/* HeldStreams::enter, and leave. */
inline countHeld() { /* HeldStreams::enter */
  atomic { /* HeldStreams::enterWith, HeldStreams::tell */
    numHeld++;
    mayAllLeave = 0
  };
#ifndef BREAK_STAY
  atomic { /* HeldStreams::ensureLookouts, SubmissionSide::ensureLookout */
    if
    :: !isSeenTo && HAS_QUIT && !(STAYS(started) && calledOff < COUNTED) && ANY_OPEN -> startIfQuit()
    :: else
    fi;
    isSeenTo = 1
  }
#endif
}
inline countLetGo() { /* HeldStreams::leave */
  atomic { /* HeldStreams::leave, HeldStreams::tell */
    numHeld--;
    mayAllLeave = numHeld == 0;
    isSeenTo = isSeenTo && numHeld != 0
  }
}
#define HOLDS_ANY ((tail > 0 && !isComplete[0]) || (tail > 1 && !isComplete[1]))
#define MUST_STAY (HOLDS_ANY && !mayAllLeave)
#ifdef BREAK_SELF
#define IS_NEEDED MUST_STAY
#else
#define IS_NEEDED HOLDS_ANY
#endif
#ifdef BREAK_RECHECK
#define IS_CROWDED 0
#else
#define IS_CROWDED MUST_STAY
#endif
#define IS_CALLED_OFF(g) (calledOff >= g)
#else
#define MUST_STAY HOLDS_STREAMS
#define IS_NEEDED HOLDS_STREAMS
#define IS_CROWDED 0
#define IS_CALLED_OFF(g) 0
#endif

/* The daemon's thread: SubmissionSide::restartIfOpen now and then. */
proctype Keeper() { /* ResidentDaemon::keep */
  do
  :: isOver -> break
  :: atomic { /* SubmissionSide::restartIfOpen */
      started < GENERATIONS && !isOver && HAS_QUIT && ANY_OPEN &&
      (!HAS_LOOKOUT || hasMoved[started % 2]) ->
      startIfQuit()
    }
#ifdef STRICT
  :: atomic { /* SubmissionSide::dismissLookout */
#ifdef BREAK_UNDECIDED
      mayAllLeave && ANY_OPEN && HAS_LOOKOUT ->
#else
      mayAllLeave && ANY_OPEN && HAS_LOOKOUT && (!STAYS(started) || HAS_QUIT) ->
#endif
      calledOff = (STAYS(started) -> started : started - 1)
    }
#endif
  od
}

/* What is said of who stays, that they leave, and a look at the ring: one step each. The submitter
 * stores an entry, then looks whether they have left. */
inline decideToLeave() { /* Intake::decideToLeave */
  atomic { /* Intake::decideToLeave, Intake::mustStay */
    decision = MUST_STAY;
#ifdef BREAK_LOOKOUT
    decision = 0;
#endif
    stays[g % 2] = (decision -> g : 0)
  };
  quitGeneration = g;
  if
#ifndef BREAK_SECOND_LOOK
  :: !decision && (next > tail || IS_CROWDED) -> quitGeneration = g - 1
  :: decision || (next <= tail && !IS_CROWDED) ->
#else
  :: 1 ->
#endif
    atomic { /* Intake::tell */
      leaving = g;
      isLookout = decision
    }
  fi;
  decision = 0
}

/* With the intake: what has come, and the gates. */
inline attend() { /* Intake::takeEntries, Intake::openGate */
  if
  :: tail < next ->
    isOpen[tail] = !IS_STREAMED(tail);
    tail++
  :: else
  fi;
  if
  :: tail > 0 && isReached[0] -> isOpen[0] = 1
  :: else
  fi;
  if
  :: tail > 1 && isReached[1] -> isOpen[1] = 1
  :: else
  fi
}
#define HAS_NEWS                                                                                   \
  (tail < next || (tail > 0 && isReached[0] && !isOpen[0]) ||                                      \
   (tail > 1 && isReached[1] && !isOpen[1]))

#ifdef BREAK_RETAKE
#define MAY_ATTEND 1
#else
#define MAY_ATTEND (isLookout || leaving < g)
#endif
#ifdef BREAK_RELIEF
#define IS_RELIEVED (started > g)
#else
#define IS_RELIEVED (begun > g)
#endif
#define MAY_DECIDE (!isLookout && (g < GENERATIONS || isOver))

#define IS_KEPT_BY(g, i) (isBehind[(g) * STREAMS + i] && WAITS(i))
#ifdef STRICT
#define MAY_BEGIN(g) (roomy || !(IS_KEPT_BY(g, 0) || IS_KEPT_BY(g, 1) || IS_KEPT_BY(g, 2)))
#else
#define MAY_BEGIN(g) (roomy || !(IS_KEPT_BY(g, 0) || IS_KEPT_BY(g, 1)))
#endif

/* One that is launched begins when what was launched in the same stream before has left. */
proctype Executor(byte g; bool isFirst) { /* Executor::run */
  bool isLookout, decision;
  if
  :: isOver && started < g -> goto end
  :: atomic { /* Intake::begin */
      isFirst && started >= g && present[streamOf[g]] == 0 && MAY_BEGIN(g) ->
      present[streamOf[g]] = E;
      begun = (begun < g -> g : begun);
      hasBegun[g] = 1
    }
  :: !isFirst && hasBegun[g]
  fi;
  do
  :: isLookout && (IS_RELIEVED || !IS_NEEDED || IS_CALLED_OFF(g)) -> break
  :: !isLookout && leaving >= g -> break
  /* a visit; all tasks are looked at */
  :: atomic { /* Executor::visit */ CAN_RUN(1) -> isComplete[1] = 1; hasMoved[g % 2] = hasMoved[g % 2] || isLookout }
  :: atomic { /* Executor::visit */ CAN_RUN(0) -> isComplete[0] = 1; hasMoved[g % 2] = hasMoved[g % 2] || isLookout }
  :: atomic { /* Intake::look */ !isTaken && MAY_ATTEND && HAS_NEWS -> attend() }
  :: atomic { /* Intake::look, Intake::watch, Intake::keepLookout */ !isTaken && MAY_ATTEND && !HAS_NEWS && MAY_DECIDE -> isTaken = 1 };
    decideToLeave();
    isTaken = 0
  od;
  atomic { /* Intake::endLookout */
    present[streamOf[g]]--;
    if
    :: isLookout -> left[g % 2] = g; hasMoved[g % 2] = 0
    :: else
    fi;
    isLookout = 0
  }
end:
}

/* The stream of a submission comes to it, lets it begin, and waits for its end. */
proctype Stream(byte i) { /* none: the stream */
#ifdef STRICT
  next > i -> isReached[i] = 1;
  isInStream[i] && isComplete[i] -> countLetGo()
#else
  isInStream[i] -> isReached[i] = 1
#endif
}

#ifdef STRICT
/* A stream of another daemon, which waits for the first submission. */
proctype Other() { /* none: another daemon */
  next > 0;
#ifdef BREAK_COUNT
  isInStream[N] = 1;
  countHeld();
#else
  countHeld();
  isInStream[N] = 1;
#endif
  isComplete[0] -> countLetGo()
}
#endif

/* The program. */
inline hold(i) { /* ResidentDaemon::holdStream */
  if
  :: IS_STREAMED(i) ->
#ifdef STRICT
    countHeld();
    startIfQuit();
#endif
    isInStream[i] = 1
  :: else
  fi
}
inline submit(i) { /* SubmissionSide::submit */
#ifdef BREAK_ORDER
  if
  :: IS_STREAMED(i) -> isInStream[i] = 1
  :: else
  fi;
  next = i + 1;
  startIfQuit()
#else
  next = i + 1;
  startIfQuit()
#ifndef STRICT
  ;
  hold(i)
#endif
#endif
}

proctype User() { /* the program */
  submit(0);
#ifdef STRICT
  if
  :: hold(0); submit(1)
  :: submit(1); hold(0)
  fi;
  hold(1);
#else
  submit(1);
#endif
  isComplete[0] && isComplete[1];
  isOver = 1
}

proctype Peer() { /* none: the other rank */
  isReady[1] = 1;
  isComplete[1];
  isReady[0] = 1
}

init {
  byte g;
  atomic {
#ifndef STRICT
    if
    :: roomy = 0
    :: roomy = 1
    fi;
#else
    mayAllLeave = 1;
    run Other();
#endif
    run User();
    run Peer();
    run Keeper();
    if
    :: IS_STREAMED(0) -> run Stream(0)
    :: else
    fi;
    if
    :: IS_STREAMED(1) -> run Stream(1)
    :: else
    fi;
    for (g : 1 .. GENERATIONS) {
      run Executor(g, 1);
      if
      :: E > 1 -> run Executor(g, 0)
      :: else
      fi
    };
    g = 0
  }
}

/* Under weak fairness the program ends, and then all executors leave. */
ltl everybodyEnds { <> (isOver && present[0] == 0 && present[1] == 0) }
