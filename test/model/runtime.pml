/* The daemon: submission, announce, reservation, preemption, quit and restart, completion, shutdown
 * and abort, of two ranks that submit the same invocations in any orders. README.md says which part
 * of the code each process and word stands for.
 *
 * Nothing here knows time: a sleep ends only when somebody ends it, so a lost wake-up is a deadlock.
 * Memory is sequentially consistent; test/explore has store buffers.
 *
 * -DHELP            the program of rank 0 runs what is open while it waits, beside the worker
 * -DHELP_ALL        all programs do
 * -DANY_ORDER       rank 1 submits in any order; else in the order opposite to rank 0's
 * -DTWICE           invocations 0 and 1 are of one collective, and start in the order of their ordinals
 * -DONE_BY_ONE      rank 0 waits for each before it submits the next
 * -DABORT           somebody aborts at some time, and rank 1 may stop submitting before
 * -DCOARSE          what is published and the ring that follows are one step, which leaves much less
 *                   to search
 * -DN=2             two invocations, or one; else three
 * -DTURNS           executors take the tasks in passes, as the code's queue has them, whether or not they can run; else any
 *                   that can, so that all policies are covered. At most two invocations, in opposite orders
 * -DBREAK_<defect>  one of the defects that README.md lists
 *
 * Behind the brace of each step stand the functions that take it, see citations_test.py.
 */
#ifdef HELP_ALL
#define HELP
#define HELPS(r) 1
#else
#define HELPS(r) (r == 0)
#endif
#ifdef COARSE
#define TOGETHER atomic
#else
#define TOGETHER
#endif

#define RANKS 2
#ifndef N
#define N 3 /* invocations that each rank submits */
#endif
#define B 2 /* thread blocks of each */
#define NEED 2 /* units of memory that an invocation holds */
#define UNITS 4 /* units that a rank has: two invocations at a time */

#define INVOCATION(r, i) ((r) * N + (i))
#define PEER(r) (1 - (r))

/* Of an invocation on a rank. */
#define UNKNOWN 0
#define SUBMITTED 1 /* in the submission queue */
#define OPEN 2      /* in the task queue */
#define FINISHED 3  /* the rank does not touch its memory any more */
#define COMPLETE 4  /* the callback has run, the result is visible */
byte state[RANKS * N];
bit announced[RANKS * N];
bit hasCallback[RANKS * N];
bit reclaimed[RANKS * N];

/* A block has one slice, which touches the user's buffers. Block 0 of invocation 0 sends, and waits
 * for nothing; of the others it reads what the peer has announced. Block 1 comes after block 0, and
 * reads what the peer's block 0 has written to the peer's memory. */
#define BIT(i, b) (1 << ((i) * B + (b)))
#define IS_DONE(r, i, b) (doneOf[r] & BIT(i, b))
byte doneOf[RANKS];

/* The task queue: tasks that are in it, and that somebody has claimed. */
byte queue[RANKS], claimed[RANKS];
/* An executor's last look (Round): what was in the queue when it began and nobody has claimed since. */
byte unseen[RANKS * 2];
/* Tasks that somebody's last look has left out, as they were claimed. */
byte leftOut[RANKS];

#ifdef TURNS
/* The queue itself: tasks in its order, and where the pass is. A task that has had its turn in the
 * pass, or came too late for one, is in `hadTurn`; one that the pass owes a turn, as it was there and
 * nobody's when the pass began, in `owed`. `agreed` are invocations that stand where all ranks put them. */
#define TASKS (N * B)
byte order[RANKS * TASKS], length[RANKS], front[RANKS];
byte hadTurn[RANKS], owed[RANKS], agreed[RANKS];
bit passHasBegun[RANKS];
byte atStart[RANKS], newcomers[RANKS], visits[RANKS];
hidden byte at, moving, task, attempt;
#endif

byte freeUnits[RANKS];
byte numOpen[RANKS];
byte helpers[RANKS];
bit failed[RANKS];
bit stopping[RANKS];
bit workerEnded[RANKS];
#ifdef BREAK_FULL_QUEUE
byte toRead[RANKS]; /* completions that the reader has not seen */
#endif
bit ended[RANKS];

/* Doorbells: of executors that are stuck, and of workers that have nothing to do. The code has a word
 * that every ring changes and a flag that somebody may be asleep; who goes to sleep takes the word as
 * his ticket and sets the flag. Here each who may sleep has taken a ticket or not, and it is still
 * good or not. */
#define AWAKE 0
#define TICKET 1 /* marked as asleep, and nobody has rung since */
#define RUNG 2
#define WORKER 0
#define USER 1
byte stuck[RANKS * 2], idle[RANKS];

inline ring(who) { /* Doorbell::ringFenced */
  d_step { /* Doorbell::wakeSleepers */
    if
    :: stuck[who * 2] == TICKET -> stuck[who * 2] = RUNG
    :: else
    fi;
    if
    :: stuck[who * 2 + 1] == TICKET -> stuck[who * 2 + 1] = RUNG
    :: else
    fi
  }
}

inline ringWorker(who) { /* Doorbell::ringFenced */
  if
  :: d_step { /* Doorbell::wakeSleepers */ idle[who] == TICKET -> idle[who] = RUNG }
  :: else
  fi
}

/* The lock of the admission: memory comes back when both ranks are through. */
#ifdef BREAK_RECLAIM
#define PEER_IS_THROUGH(r, i) 1
#else
#define PEER_IS_THROUGH(r, i) (state[INVOCATION(PEER(r), i)] >= FINISHED)
#endif
#define CAN_RECLAIM(r, i)                                                                          \
  (state[INVOCATION(r, i)] >= FINISHED && !reclaimed[INVOCATION(r, i)] && PEER_IS_THROUGH(r, i))

inline reclaim(r) { /* Admission::reclaimAll, Admission::reclaimBefore */
  for (j : 0 .. N - 1) {
    if
    :: CAN_RECLAIM(r, j) ->
      reclaimed[INVOCATION(r, j)] = 1;
      freeUnits[r] = freeUnits[r] + NEED
    :: else
    fi
  }
  j = 0
}

#ifdef BREAK_ABORT_CHECK
#define FAILED(r) 0
#else
#define FAILED(r) failed[r]
#endif

#ifdef BREAK_POOL
#define AT_ONCE 1 /* the other unit is taken when it starts: held and waited for */
#else
#define AT_ONCE NEED
#endif

/* Reserves all, or nothing; announces; hands over to the executors. Then rings whoever sleeps. */
inline submit(r, i) { /* Daemon::submit */
  TOGETHER { /* Admission::submit */
    atomic { /* Admission::reserve, Admission::announce, TaskBoard::submit */
      if
      :: !failed[r] -> reclaim(r)
      :: else
      fi;
      if
      :: failed[r] -> refused = 1
      :: !failed[r] && freeUnits[r] >= AT_ONCE ->
        freeUnits[r] = freeUnits[r] - AT_ONCE;
        numOpen[r]++;
        again = 0;
        announced[INVOCATION(r, i)] = 1;
#ifdef BREAK_SAME_ID
        /* One place for the collective's callback and state, whoever is there. */
        if
        :: i == 1 && state[INVOCATION(r, 0)] < FINISHED -> state[INVOCATION(r, 0)] = UNKNOWN
        :: else
        fi;
#endif
#ifndef BREAK_CALLBACK
        hasCallback[INVOCATION(r, i)] = 1;
#endif
        state[INVOCATION(r, i)] = SUBMITTED
      :: else -> again = 1
      fi
    }
    if
    :: refused || again
    :: else ->
#ifdef BREAK_CALLBACK
      hasCallback[INVOCATION(r, i)] = 1;
#endif
      if
      :: FAILED(r) -> settle(r)
      :: else
      fi;
      atomic { /* Core::ringReaders, Device::wakeFor */
        ring(PEER(r));
#ifndef BREAK_OWN_RING
        ring(r);
#endif
        if
        :: helpers[r] == 0 -> ringWorker(r)
        :: else
        fi
      }
    fi
  }
}

#ifdef TURNS
/* All that was there when a pass began has had its turn in it, unless somebody held it then. */
inline beginPass(r, tasks) { /* TaskQueue::beginPass */
  assert(owed[r] == 0);
  owed[r] = queue[r] & ~claimed[r];
  hadTurn[r] = 0;
  front[r] = 0;
  passHasBegun[r] = 0;
  atStart[r] = tasks;
  newcomers[r] = 0;
  visits[r] = 0
}
#endif

/* What nobody reads any more has one value. */
inline forget(r) { /* none: fewer states */
  for (j : 0 .. N - 1) {
    reclaimed[INVOCATION(r, j)] = 0;
    if
    :: failed[PEER(r)] -> announced[INVOCATION(r, j)] = 0
    :: else
    fi
  }
  if
  :: failed[PEER(r)] -> doneOf[r] = 0
  :: else
  fi;
  queue[r] = 0;
#ifdef TURNS
  for (j : 0 .. TASKS - 1) {
    order[r * TASKS + j] = 0
  }
  length[r] = 0;
  owed[r] = 0;
  beginPass(r, 0);
#endif
  freeUnits[r] = 0
}

#ifdef BREAK_SETTLE_CLAIMED
#define NOBODY_IS_AT_IT(r) 1
#else
#define NOBODY_IS_AT_IT(r) (claimed[r] == 0)
#endif

/* After a failure: all that is open ends, as soon as nobody is at it. */
inline settle(r) { /* Core::settleFailure */
  TOGETHER { /* Core::settleFailure */
    atomic { /* TaskBoard::abandon, TaskBoard::stop, Core::finish */
      if
      :: NOBODY_IS_AT_IT(r) ->
        for (j : 0 .. N - 1) {
          if
          :: state[INVOCATION(r, j)] == SUBMITTED || state[INVOCATION(r, j)] == OPEN ->
            state[INVOCATION(r, j)] = COMPLETE;
            numOpen[r]--
          :: else
          fi
        };
        forget(r);
        j = 0
      :: else
      fi
    }
    ring(r)
  }
}

#if defined(TWICE) && !defined(BREAK_SUCCESSOR)
#define MAY_START(r, i) (i != 1 || state[INVOCATION(r, 0)] >= FINISHED)
#elif defined(BREAK_POOL)
#define MAY_START(r, i) (freeUnits[r] != 0)
#else
#define MAY_START(r, i) 1
#endif

#define CAN_RUN(r, i, b)                                                                           \
  (b == 0 -> i == 0 || announced[INVOCATION(PEER(r), i)]                                           \
          : IS_DONE(r, i, 0) && announced[INVOCATION(PEER(r), i)] && IS_DONE(PEER(r), i, 0))

#ifdef TURNS
/* Whether invocation i goes before k. What all ranks have announced goes first, in the order of
 * rank 0; then what was submitted first. */
#define AGREED(r, i) ((agreed[r] >> (i)) & 1)
#define GOES_BEFORE(r, i, k)                                                                       \
  ((i) != (k) && (AGREED(r, i) != AGREED(r, k) -> AGREED(r, i) : (AGREED(r, i) || r == 0) == ((i) < (k))))
#define AT(r, position) order[(r) * TASKS + (position)]

inline place(r) { /* TaskQueue::place */
  at = 0;
  do
  :: at < length[r] && !GOES_BEFORE(r, task / B, AT(r, at) / B) -> at++
  :: else -> break
  od;
  moving = length[r];
  do
  :: moving > at -> AT(r, moving) = AT(r, moving - 1); moving--
  :: else -> break
  od;
  AT(r, at) = task;
  length[r]++;
  if
  :: at < front[r] && (hadTurn[r] & (1 << task)) -> front[r]++
#ifndef BREAK_MOVED
  :: at < front[r] && !(hadTurn[r] & (1 << task)) -> front[r] = at
#endif
  :: else
  fi
}

inline take(r) { /* TaskQueue::take */
  at = 0;
  do
  :: AT(r, at) != task -> at++
  :: else -> break
  od;
  if
  :: at < front[r] -> front[r]--
  :: else
  fi;
  length[r]--;
  do
  :: at < length[r] -> AT(r, at) = AT(r, at + 1); at++
  :: else -> break
  od;
  AT(r, length[r]) = 0
}

inline insert(r) { /* TaskQueue::insert */
  if
  :: length[r] == 0 -> beginPass(r, 0)
  :: else
  fi;
  if
#ifdef BREAK_LATE
  :: 0
#else
  :: passHasBegun[r] && newcomers[r] >= atStart[r] -> hadTurn[r] = hadTurn[r] | (1 << task)
#endif
  :: else
  fi;
  if
  :: passHasBegun[r] -> newcomers[r]++
  :: else -> atStart[r]++
  fi;
  place(r)
}

/* What all ranks have announced moves to where all of them put it, with the turn that it has. */
inline agree(r, i) { /* TaskBoard::place, TaskQueue::move */
  d_step { /* TaskBoard::place, TaskQueue::move */
    if
    :: length[r] > B && announced[INVOCATION(PEER(r), i)] && !AGREED(r, i) ->
      task = i * B;
      do
      :: task < (i + 1) * B ->
        if
        :: queue[r] & (1 << task) ->
          take(r);
          agreed[r] = agreed[r] | (1 << i);
          place(r)
        :: else
        fi;
        task++
      :: else -> break
      od
    :: else
    fi
  }
}

#define NTH(r, j) (r == 0 -> j : N - 1 - (j)) /* to be submitted */
#else
#define NTH(r, j) (j)
#endif

/* TaskBoard::drainAll, under the board's lock: what has been submitted starts. */
inline drain(r) { /* TaskBoard::drainAll, TaskBoard::start, TaskBoard::startSuccessor */
  for (j : 0 .. N - 1) {
    if
    :: state[INVOCATION(r, NTH(r, j))] == SUBMITTED && MAY_START(r, NTH(r, j)) ->
#ifdef BREAK_POOL
      freeUnits[r]--;
#endif
      state[INVOCATION(r, NTH(r, j))] = OPEN;
#ifdef TURNS
      d_step { /* TaskQueue::insert */
        task = NTH(r, j) * B;
        insert(r);
        queue[r] = queue[r] | (1 << task);
        task++;
        insert(r);
        queue[r] = queue[r] | (1 << task)
      }
#else
      queue[r] = queue[r] | BIT(j, 0) | BIT(j, 1)
#endif
    :: else
    fi
  }
  j = 0
}

/* With several executors, or an end that may come at any time, a task is seen to be claimed for a
 * while; else nobody looks. */
#if defined(HELP) || defined(ABORT)
#define APART 1
#else
#define APART 0
#endif

/* TaskQueue::claimNext takes the tasks in passes, which newcomers and tasks that move disturb: so it
 * does with -DTURNS. Else it is any of them that can run, so that all passes are covered, and in a
 * last look also any that has not been looked at in it; looks in vain before the mark are left out
 * then: there is a last look behind it, or a ring. */
#define FREE(r) (queue[r] & ~claimed[r])
#if defined(BREAK_PREEMPTION) || defined(BREAK_POINTER_EXCHANGE)
#define TAKES(r, i, b, second) (FREE(r) & BIT(i, b))
#else
#define TAKES(r, i, b, second)                                                                     \
  ((FREE(r) & BIT(i, b)) && ((second && (unseen[r * 2 + me] & BIT(i, b))) || CAN_RUN(r, i, b)))
#endif
inline claim(r, second) { /* TaskBoard::claimNext, TaskQueue::claimNext */
#ifdef TURNS
  /* The rest of this pass, then the next one. */
  d_step { /* TaskQueue::claimNext */
    attempt = 0;
    do
    :: !holds && front[r] < length[r] ->
      task = AT(r, front[r]);
      if
      :: (claimed[r] | hadTurn[r]) & (1 << task)
      :: else ->
        passHasBegun[r] = 1;
#ifndef BREAK_TURNS
        hadTurn[r] = hadTurn[r] | (1 << task);
        visits[r]++;
        assert(visits[r] <= 2 * atStart[r]);
#endif
        owed[r] = owed[r] & ~(1 << task);
        invocation = task / B;
        block = task % B;
        holds = 1
      fi;
#ifdef BREAK_TURNS
      front[r] = (holds -> 0 : front[r] + 1)
#else
      front[r]++
#endif
    :: !holds && front[r] >= length[r] && attempt < 2 ->
      beginPass(r, length[r]);
      attempt++
    :: else -> break
    od
  };
#else
  if
  :: TAKES(r, 0, 0, second) -> invocation = 0; block = 0; holds = 1
  :: TAKES(r, 0, 1, second) -> invocation = 0; block = 1; holds = 1
#if N > 1
  :: TAKES(r, 1, 0, second) -> invocation = 1; block = 0; holds = 1
  :: TAKES(r, 1, 1, second) -> invocation = 1; block = 1; holds = 1
#endif
#if N > 2
  :: TAKES(r, 2, 0, second) -> invocation = 2; block = 0; holds = 1
  :: TAKES(r, 2, 1, second) -> invocation = 2; block = 1; holds = 1
#endif
  :: else
  fi;
#endif
  if
  :: holds ->
    claimed[r] = claimed[r] | BIT(invocation, block);
    leftOut[r] = leftOut[r] & ~BIT(invocation, block);
    unseen[r * 2] = unseen[r * 2] & ~BIT(invocation, block);
    unseen[r * 2 + 1] = unseen[r * 2 + 1] & ~BIT(invocation, block)
  :: else
  fi
}

/* TaskBoard::release, and what makes an invocation finished. */
inline release(r) { /* TaskBoard::release, TaskQueue::release */
  claimed[r] = claimed[r] & ~BIT(invocation, block);
#ifndef BREAK_LEFT_OUT
  again = (leftOut[r] & BIT(invocation, block)) != 0;
#endif
  leftOut[r] = leftOut[r] & ~BIT(invocation, block);
  last = (moved && IS_DONE(r, invocation, 0) && IS_DONE(r, invocation, 1) &&
          state[INVOCATION(r, invocation)] == OPEN);
  if
  :: last -> state[INVOCATION(r, invocation)] = FINISHED
  :: else -> invocation = 0
  fi;
  block = 0;
  holds = 0
}

/* The slice: the program's buffers are the program's again once the invocation is complete, the
 * peer's memory is there as long as this rank has not finished, and invocations of one collective
 * run one after another. */
inline touch(r) { /* StepDriver::advance, StepDriver::executeSlice, StepDriver::publish */
  assert(state[INVOCATION(r, invocation)] != COMPLETE);
  assert(block == 0 || failed[PEER(r)] || failed[r] || !reclaimed[INVOCATION(PEER(r), invocation)]);
#ifdef TWICE
  assert(invocation != 1 || state[INVOCATION(r, 0)] >= FINISHED);
#endif
  doneOf[r] = doneOf[r] | BIT(invocation, block);
#ifdef TURNS
  d_step { /* TaskQueue::remove */
    task = invocation * B + block;
    take(r);
    hadTurn[r] = hadTurn[r] & ~(1 << task)
  };
#endif
  queue[r] = queue[r] & ~BIT(invocation, block)
}

/* Executor::visitOne: one task is claimed and looked at; `moved` if it can run. In the last look,
 * `over` if every task that was there when it began has been claimed since, or is. */
inline look(r, second) { /* Executor::visitOne */
  atomic { /* TaskBoard::claim, TaskQueue::begin, TaskQueue::look */
    moved = 0;
    mustSettle = FAILED(r);
    if
    :: mustSettle -> over = second
    :: else ->
#ifdef BREAK_NEWCOMERS
      if
      :: second && !begun -> unseen[r * 2 + me] = queue[r]
      :: else
      fi;
#endif
      drain(r);
#ifndef BREAK_NEWCOMERS
      if
      :: second && !begun -> unseen[r * 2 + me] = queue[r]
      :: else
      fi;
#endif
      begun = second;
      claim(r, second);
#ifdef BREAK_ROUND
      over = second; /* one look, whatever there is */
#else
      over = (second && (unseen[r * 2 + me] & FREE(r)) == 0);
#endif
      if
      :: over ->
        leftOut[r] = leftOut[r] | (unseen[r * 2 + me] & queue[r] & ~(holds << (invocation * B + block)));
        unseen[r * 2 + me] = 0
      :: else
      fi;
      if
      :: holds ->
#ifdef BREAK_POINTER_EXCHANGE
        announced[INVOCATION(PEER(r), invocation)]; /* waits, and nothing else runs meanwhile */
#endif
#ifdef BREAK_PREEMPTION
        CAN_RUN(r, invocation, block);
#endif
        moved = CAN_RUN(r, invocation, block);
#ifdef TURNS
        agree(r, invocation);
#endif
        if
        :: !APART && moved -> touch(r)
        :: !APART && !moved -> release(r)
        :: else
        fi
      :: else
      fi
    fi
  }
}

/* The rest of Executor::visitClaimed. */
inline carryOut(r) { /* Executor::visitClaimed */
  if
  :: mustSettle ->
    mustSettle = 0;
#ifndef BREAK_SETTLE
    settle(r)
#endif
  :: !mustSettle && holds ->
    TOGETHER { /* Executor::visitClaimed */
#if defined(HELP) || defined(ABORT)
    d_step { /* Executor::run, StepDriver::advance */
      if
      :: moved -> touch(r)
      :: else
      fi
    };
#endif
    atomic { /* StepDriver::ringAll, TaskBoard::release */
#ifndef BREAK_DATA_RING
      if
      :: moved && block == 0 -> ring(PEER(r)) /* block 1 has nothing for the peer */
      :: else
      fi;
#endif
      release(r)
    }
    };
    if
    :: last -> complete(r, invocation)
    :: else
    fi
  :: else
  fi
}

/* Whoever ends an invocation runs its callback, with nothing claimed. */
inline complete(r, i) { /* Executor::complete */
#ifdef BREAK_FULL_QUEUE
  toRead[r] < 1; /* spins while the queue is full */
  toRead[r]++;
#endif
  TOGETHER { /* Core::finish */
    atomic { /* Core::finish, Core::callBack */
      assert(hasCallback[INVOCATION(r, i)]);
      assert(state[INVOCATION(r, i)] == FINISHED);
      state[INVOCATION(r, i)] = COMPLETE;
      numOpen[r]--;
      last = 0;
      i = 0
    };
    ring(r)
  }
}

/* Executor::runUntil: looks, offers of the processor and rounds that move nothing, for as long as it
 * likes; then the mark, and the last look, which is at everything (Executor::idle, lookAtAll). */
inline execute(r, done) { /* Executor::runUntil */
  do
  :: done -> break
  :: !(done) ->
    look(r, 0);
    carryOut(r);
    moved = 0;
    again = 0
  :: !(done) ->
    stuck[r * 2 + me] = TICKET; /* Doorbell::prepareSleep */
#ifndef BREAK_SECOND_LOOK
    if
    :: done -> break
    :: else
    fi;
    do
    :: !over && !moved && !again -> /* Executor::lookAtAll */
      look(r, 1);
      carryOut(r)
    :: over || moved || again -> break
    od;
#endif
    atomic { /* Executor::quit, Doorbell::sleep */
      moved || again || stuck[r * 2 + me] == RUNG;
      stuck[r * 2 + me] = AWAKE;
      unseen[r * 2 + me] = 0;
      moved = 0;
      again = 0;
      begun = 0;
      over = 0
    }
  od;
  atomic { /* none: fewer states */
    moved = 0;
    again = 0;
    stuck[r * 2 + me] = AWAKE
  }
}

/* Who stops executing may have enabled what another executor of the rank, asleep, waits for. */
inline leave(r) { /* Device::handOver */
#ifdef BREAK_LEAVE
  skip
#else
  if
  :: numOpen[r] != 0 -> ring(r)
  :: else
  fi
#endif
}

/* A thread inside of wait(): an executor until `done`, then what is left is the others'. */
inline help(r, done) { /* Daemon::wait, InsideWait::InsideWait, InsideWait::~InsideWait */
  helpers[r]++; /* InsideWait::InsideWait */
  execute(r, done);
#ifdef BREAK_RING_FIRST
  if
  :: numOpen[r] != 0 && helpers[r] == 0 -> ringWorker(r)
  :: else
  fi;
  helpers[r]--;
#else
  helpers[r]--; /* InsideWait::~InsideWait */
  leave(r);
  if
  :: numOpen[r] != 0 && helpers[r] == 0 -> ringWorker(r)
  :: else
  fi
#endif
}

#define HAS_WORK(r) (numOpen[r] != 0 && helpers[r] == 0)

/* A rank's own thread. */
proctype Worker(byte r) { /* Worker::loop */
  byte j, invocation, block;
  byte me = WORKER;
  bit last, moved, mustSettle, holds, begun, over, again;
  do
#ifdef BREAK_QUIT
  :: stopping[r] -> break /* whatever is unfinished */
#else
  :: stopping[r] && numOpen[r] == 0 -> break
#endif
  :: else ->
#ifdef BREAK_QUIT
    execute(r, (!HAS_WORK(r) || stopping[r]));
#else
    execute(r, !HAS_WORK(r));
#endif
#ifndef BREAK_WORKER_LEAVES
    leave(r);
#endif
#ifdef BREAK_COND_WAIT
    /* Looks, then waits for a signal: one that comes in between is lost. */
    if
    :: !HAS_WORK(r) && !stopping[r] ->
      idle[r] = TICKET;
      atomic { /* none: -DBREAK_COND_WAIT */ idle[r] == RUNG -> idle[r] = AWAKE }
    :: else
    fi
#else
    idle[r] = TICKET; /* Worker::sleepUntilRung, Doorbell::prepareSleep */
    if
    :: stopping[r] -> idle[r] = AWAKE
    :: else ->
      if
      :: numOpen[r] == 0 -> atomic { /* Doorbell::sleep */ idle[r] == RUNG -> idle[r] = AWAKE }
      :: else -> /* Worker::hasWork: two loads */
        if
        :: helpers[r] == 0 -> idle[r] = AWAKE
        :: else -> atomic { /* Doorbell::sleep */ idle[r] == RUNG -> idle[r] = AWAKE }
        fi
      fi
    fi
#endif
  od;
  workerEnded[r] = 1
}

#ifdef BREAK_FULL_QUEUE
/* Reads the completion queue; its callback waits until the daemon is idle, as one that synchronises
 * with a device does. */
active [RANKS] proctype Reader() { /* none: -DBREAK_FULL_QUEUE */
  do
  :: toRead[_pid] > 0 ->
    toRead[_pid]--;
    stuck[_pid * 2] == TICKET || idle[_pid] == TICKET || workerEnded[_pid]
  :: ended[_pid] && toRead[_pid] == 0 -> break
  od
}
#endif

#define IS_OVER(r, i)                                                                              \
  (state[INVOCATION(r, i)] == COMPLETE || (state[INVOCATION(r, i)] == UNKNOWN && failed[r]))
#if N > 2
#define ALL_OVER(r) (IS_OVER(r, 0) && IS_OVER(r, 1) && IS_OVER(r, 2))
#define SOMETHING_TO_RECLAIM(r) (CAN_RECLAIM(r, 0) || CAN_RECLAIM(r, 1) || CAN_RECLAIM(r, 2))
#elif N > 1
#define ALL_OVER(r) (IS_OVER(r, 0) && IS_OVER(r, 1))
#define SOMETHING_TO_RECLAIM(r) (CAN_RECLAIM(r, 0) || CAN_RECLAIM(r, 1))
#else
#define ALL_OVER(r) IS_OVER(r, 0)
#define SOMETHING_TO_RECLAIM(r) CAN_RECLAIM(r, 0)
#endif
#define ALL_GIVEN ((1 << N) - 1)

/* Names of the collectives do not matter: rank 0 submits them as 0, 1, 2, rank 1 in any order, or,
 * which leaves less to search, the other way round. */
#ifdef ANY_ORDER
#define IS_NEXT(r, i) (r == 1 || given == (1 << i) - 1)
#else
#define IS_NEXT(r, i) (given == (r == 0 -> (1 << i) - 1 : ALL_GIVEN - (2 << i) + 1))
#endif
#ifdef TWICE
#define MAY_SUBMIT(r, i) (!(given & (1 << i)) && (i != 1 || given & 1) && IS_NEXT(r, i))
#else
#define MAY_SUBMIT(r, i) (!(given & (1 << i)) && IS_NEXT(r, i))
#endif

/* The program. */
proctype User(byte r) { /* the program */
  byte me = USER;
  byte j, invocation, block, given, wanted;
  bit last, moved, mustSettle, holds, begun, over, refused, again;
  do
  :: given == ALL_GIVEN -> break
#ifdef ABORT
  :: r == 1 && given != ALL_GIVEN -> failed[1]; break /* silent until the others give up */
#endif
  :: MAY_SUBMIT(r, 0) -> wanted = 0; goto next
#if N > 1
  :: MAY_SUBMIT(r, 1) -> wanted = 1; goto next
#endif
#if N > 2
  :: MAY_SUBMIT(r, 2) -> wanted = 2; goto next
#endif
  :: 0 ->
next:
    submit(r, wanted);
    if
    :: refused -> atomic { /* the program */ wanted = 0; refused = 0; break }
    :: !refused && again -> SOMETHING_TO_RECLAIM(r) || failed[r] /* calls again then */
    :: else ->
      given = given | (1 << wanted);
#ifdef ONE_BY_ONE
      (r == 1 || state[INVOCATION(r, wanted)] == COMPLETE)
#endif
    fi;
    atomic { /* the program */ again = 0; wanted = 0 }
  od;
#ifndef BREAK_QUIT
#ifdef HELP
  /* It waits for one of them, by running what is open; the callback tells of the others. */
  if
  :: HELPS(r) && state[INVOCATION(r, N - 1)] != UNKNOWN ->
    help(r, state[INVOCATION(r, N - 1)] == COMPLETE)
  :: else
  fi;
#endif
  ALL_OVER(r);
#endif
  /* The end of the communicator. */
  TOGETHER { /* Daemon::drain, Device::~Device, Worker::~Worker */
    stopping[r] = 1;
    ringWorker(r);
    ring(r)
  };
  workerEnded[r];
  ALL_OVER(r);
  ended[r] = 1
}

#ifdef ABORT
/* occlCommAbort on rank 0, by a thread of its own, at any time. */
proctype Abort() { /* Daemon::fail */
  byte j;
  TOGETHER { /* Fabric::fail, Fabric::tell */ failed[0] = 1; ring(0) };
#ifndef BREAK_TELL
  TOGETHER { /* Fabric::tell */ failed[1] = 1; ring(1) };
#endif
#ifndef BREAK_ABORT_CHECK
  settle(0)
#endif
}
#endif

init {
  atomic {
    freeUnits[0] = UNITS;
    freeUnits[1] = UNITS;
    run User(0);
    run User(1);
    run Worker(0);
    run Worker(1);
#ifdef ABORT
    run Abort()
#endif
  }
}

/* Under weak fairness every program ends: no request is lost or starved. */
ltl everybodyEnds { <> (ended[0] && ended[1]) }
