/* Ranks that access each other's user buffers (docs/progress.md): two ranks exchange what is in theirs, in two
 * collectives, each several times in a row. A rank's program fills a buffer, submits, and may do with it what it likes
 * once the invocation has ended. Executors take the steps of open invocations in any order.
 *
 * By reference: a rank refers its peer to its buffer, receives, and ends when the peer has consumed it all.
 * -DDIRECT: it reads the peer's buffer once that one has begun the invocation, and ends when the peer has signalled.
 *
 * -DBREAK_DRAIN   an invocation ends without waiting for who was referred to its buffer (or for the signal)
 * -DBREAK_ORDER   it waits for that before it receives
 * -DBREAK_BEGUN   the peer's buffer is accessed whether or not the peer has begun the invocation
 */
#define RANKS 2
#define COLLECTIVES 2
#ifndef TIMES
#define TIMES 3
#endif
#define NOTHING 255

#define AT(r, c) ((r) * COLLECTIVES + (c))
#define MINE AT(r, c)
#define THEIRS AT(1 - r, c)

mtype = { Idle, Begun, Sent, Reading, Read };
mtype phase[RANKS * COLLECTIVES] = Idle;
byte ordinal[RANKS * COLLECTIVES];
byte buffer[RANKS * COLLECTIVES] = NOTHING; /* the invocation whose data it has */
byte begun[RANKS * COLLECTIVES], referred[RANKS * COLLECTIVES], consumed[RANKS * COLLECTIVES];
byte ended;

#if defined(BREAK_BEGUN)
#define MAY_READ true
#elif defined(DIRECT)
#define MAY_READ (begun[THEIRS] > ordinal[MINE])
#else
#define MAY_READ (referred[THEIRS] > ordinal[MINE])
#endif
#ifdef BREAK_DRAIN
#define IS_DRAINED true
#else
#define IS_DRAINED (consumed[MINE] > ordinal[MINE])
#endif
#ifdef BREAK_ORDER
#define MAY_RECEIVE (MAY_READ && IS_DRAINED)
#else
#define MAY_RECEIVE MAY_READ
#endif

/* The steps of one collective on one rank, each when it can be; the others' come in between as they like. */
proctype Steps(byte r, c) {
  do
  :: atomic {
      phase[MINE] == Idle && ordinal[MINE] < TIMES ->
      buffer[MINE] = ordinal[MINE]; /* the program's */
      begun[MINE] = ordinal[MINE] + 1;
      phase[MINE] = Begun
    }
  :: atomic {
      phase[MINE] == Begun ->
      referred[MINE] = ordinal[MINE] + 1;
      phase[MINE] = Sent
    }
  :: atomic {
      phase[MINE] == Sent && MAY_RECEIVE ->
      assert(buffer[THEIRS] == ordinal[MINE]);
      phase[MINE] = Reading
    }
  :: atomic {
      phase[MINE] == Reading ->
      assert(buffer[THEIRS] == ordinal[MINE]); /* still */
      consumed[THEIRS] = ordinal[MINE] + 1;
      phase[MINE] = Read
    }
  :: atomic {
      phase[MINE] == Read && IS_DRAINED ->
      buffer[MINE] = NOTHING;
      ordinal[MINE]++;
      phase[MINE] = Idle
    }
  :: phase[MINE] == Idle && ordinal[MINE] == TIMES -> break
  od;
  ended++
}

init {
  atomic {
    run Steps(0, 0);
    run Steps(0, 1);
    run Steps(1, 0);
    run Steps(1, 1)
  }
}

ltl everybodyEnds { <> (ended == RANKS * COLLECTIVES) }
