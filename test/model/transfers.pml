/* Transfers of two ranks through the rings of their pairs (docs/decisions/hosts/transfers.md), in groups and one after the other.
 *
 * Each rank has N transfers to the other one and N from it; SMALL has a bit for each that is small. A ring has ROOM places. A small
 * transfer takes two of them, for its line and its data; another one takes one, for its line, which refers to the sender's buffer.
 * What a rank's program does with its buffers once it has them back shows as GARBAGE.
 *
 * In a group, the default, a rank's sends and its receives are a task each, which executors take further in any order.
 * -DONE_BY_ONE: a call for each; rank 0 sends before it receives, rank 1 receives before it sends.
 * -DCYCLE: with ONE_BY_ONE, rank 1 sends first, too. Then large sends wait for each other, as occl_transfer.h says.
 *
 * -DBREAK_TAIL    the tail is stored before line and data
 * -DBREAK_ROOM    what is not read yet is written over
 * -DBREAK_HEAD    the head is stored before the data are read
 * -DBREAK_DRAIN   a send that refers to its buffer ends when its line is in the ring
 * -DBREAK_GROUP   a group receives when its sends have ended
 * -DBREAK_PUBLISH who waits for room has not published what is in the ring
 */
#ifndef N
#define N 4
#endif
#ifndef SMALL
#define SMALL 5
#endif
#define ROOM 3
#define GARBAGE 255
#define NOTHING 254
#define REFERENCE 100

#define IS_SMALL(k) ((SMALL >> (k)) & 1)
#define VALUE(r, k) (10 * (r) + (k))
#define AT(source, position) ((source) * ROOM + (position) % ROOM)

byte ring[2 * ROOM] = NOTHING;
byte tail[2], head[2]; /* by source */
byte sendBuffer[2 * N];
bool sendsEnded[2], receivesEnded[2];

#ifdef BREAK_ROOM
#define HAS_ROOM true
#else
#define HAS_ROOM (written < head[r] + ROOM)
#endif
#ifdef BREAK_DRAIN
#define IS_DRAINED true
#else
#define IS_DRAINED (head[r] >= referred)
#endif

#if defined(ONE_BY_ONE) && !defined(CYCLE)
#define MAY_SEND (r == 0 || receivesEnded[r])
#define MAY_RECEIVE (r == 1 || sendsEnded[r])
#elif defined(CYCLE) || defined(BREAK_GROUP)
#define MAY_SEND true
#define MAY_RECEIVE sendsEnded[r]
#else
#define MAY_SEND true
#define MAY_RECEIVE true
#endif

inline write(what) { /* RingSource::room, RingSource::write, SendEnd::publish */
  if
  :: HAS_ROOM
  :: !HAS_ROOM ->
#ifndef BREAK_PUBLISH
    tail[r] = written;
#endif
    HAS_ROOM
  fi;
#ifdef BREAK_TAIL
  tail[r] = written + 1;
#endif
  ring[AT(r, written)] = what;
  written++
}

inline giveBack(first, last) { /* Core::finish */
  atomic { /* the program */
    for (j : first .. last) {
      sendBuffer[r * N + j] = GARBAGE
    }
  }
}

proctype Sends(byte r) { /* SendEnd::run, SendEnd::runParts */
  byte written, referred, k, j;
  MAY_SEND;
  do
  :: k < N ->
    if
    :: IS_SMALL(k) -> write(k); write(sendBuffer[r * N + k])
    :: else -> write(REFERENCE + k); referred = written
    fi;
#ifdef ONE_BY_ONE
    tail[r] = written;
    IS_DRAINED;
    giveBack(k, k);
#else
    if /* several at once */
    :: tail[r] = written
    :: true
    fi;
#endif
    k++
  :: else -> break
  od;
  tail[r] = written;
  IS_DRAINED;
  giveBack(0, N - 1);
  sendsEnded[r] = true
}

#define SOURCE (1 - r)

inline read(what) { /* RingSink::available, RingSink::look */
  tail[SOURCE] > consumed;
#ifdef BREAK_HEAD
  head[SOURCE] = consumed + 1;
#endif
  what = ring[AT(SOURCE, consumed)]
}

inline release() { /* RingSink::skip, RingSink::release */
  consumed++;
  head[SOURCE] = consumed
}

proctype Receives(byte r) { /* ReceiveEnd::run, ReceiveEnd::runParts */
  byte consumed, k, line, got;
  MAY_RECEIVE;
  do
  :: k < N ->
    read(line);
    assert(line == (IS_SMALL(k) -> k : REFERENCE + k)); /* ReceiveEnd::accept */
    if
    :: IS_SMALL(k) -> release(); read(got)
    :: else -> got = sendBuffer[SOURCE * N + k] /* readReferred */
    fi;
    release();
    assert(got == VALUE(SOURCE, k));
    k++
  :: else -> break
  od;
  receivesEnded[r] = true
}

init {
  byte r, k;
  atomic {
    for (r : 0 .. 1) {
      for (k : 0 .. N - 1) {
        sendBuffer[r * N + k] = VALUE(r, k)
      }
      run Sends(r);
      run Receives(r)
    }
  }
}

ltl everybodyEnds { <> (sendsEnded[0] && sendsEnded[1] && receivesEnded[0] && receivesEnded[1]) }
