/* Transfers of two ranks on devices (docs/decisions/gpu/device-transfers.md): each sends PIECES to the other one in each of ROUNDS groups,
 * through SLOTS slots. A group is a kernel of BLOCKS thread blocks, for which the device has ROOM at a time. A block takes the next
 * piece of a column of any direction whose slot is ready: piece i is in column i % 2. It may leave at any time, unless it is the last that has not ended; then another one of
 * its kernel finds room. Memory is sequentially consistent: the code fences before each word that it stores for the other rank.
 * With -DFAILS any block may give up at any time; what its kernel leaves behind must mislead nobody. With -DCOUNTS the count of a
 * transfer, which a receiver loads beside the word that says that the slot is filled, is looked at as well.
 *
 * -DBREAK_FILLED  the slot is said to be filled before it is (transfer_kernel.cu, `transfer`)
 * -DBREAK_EMPTIED the slot is said to be emptied before it is
 * -DBREAK_READY   what is not read yet is written over (Chooser::isReady)
 * -DBREAK_CLAIM   a piece is claimed without a look whether somebody has it (Chooser::choose)
 * -DBREAK_LEAVE   the last block of a kernel leaves, too (Chooser::mayLeave)
 * -DBREAK_OWN     each block has pieces of its own, and waits for them
 * -DBREAK_NUMBERS the first block that ends moves the numbers on (Chooser::end)
 * -DBREAK_LATE    a kernel begins although one before it gave up (Chooser::isTooLate)
 * -DBREAK_COUNT   the words of a slot that was never filled are those of its first use (pair_slots.h, countWord)
 */
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef PIECES
#define PIECES 3
#endif
#ifndef ROOM
#define ROOM 2
#endif
#define BLOCKS 2
#ifndef ROUNDS
#define ROUNDS 2
#endif

#define AT(source, piece) ((source) * SLOTS + (piece) % SLOTS)
#define USE(piece) ((piece) / SLOTS)
#define VALUE(source, piece) ((source) * 100 + (piece))

byte data[2 * SLOTS] = 255; /* at the destination, by source */
byte filled[2 * SLOTS], emptied[2 * SLOTS];
byte next[4]; /* of a rank: 2 * rank, and one more of what it sends */
byte claimed[8]; /* of these, two columns */
#define NEXT(d, column) (claimed[2 * (d) + (column)] * 2 + (column)) /* piece */
byte ended[2], gone[2], kernel[2], room[2] = ROOM;
#ifdef FAILS
bool gaveUp[2];
#endif
#ifdef COUNTS
byte countUse[2 * SLOTS], count[2 * SLOTS];
#ifdef BREAK_COUNT
#define COUNT_USE(piece) USE(piece)
#else
#define COUNT_USE(piece) (USE(piece) + 1)
#endif
#define STORE_COUNT atomic { /* launchTransfers */ countUse[AT(r, piece)] = COUNT_USE(piece); count[AT(r, piece)] = VALUE(r, k * PIECES + c) }
#define LOAD_COUNT atomic { /* Chooser::isReady */ seenUse = countUse[AT(1 - r, base[0] + c)]; seen = count[AT(1 - r, base[0] + c)] }
#define IS_COUNTED (seenUse == COUNT_USE(base[0] + c))
#define MAY_LOOK(column) true
#else
#define STORE_COUNT skip
#define LOAD_COUNT skip
#define IS_COUNTED true
#define MAY_LOOK(column) (IS_FILLED(base[0] + NEXT(2 * r, column)))
#endif

#ifdef BREAK_READY
#define IS_EMPTY(piece) true
#else
#define IS_EMPTY(piece) (emptied[AT(r, piece)] >= USE(piece))
#endif
#define IS_FILLED(piece) (filled[AT(1 - r, piece)] > USE(piece))
#ifdef BREAK_OWN
#define IS_OWN(c) ((c) % BLOCKS == b)
#define IS_NEXT(d, c) (mine[(d) % 2] == c)
#else
#define IS_OWN(c) true
#define IS_NEXT(d, c) true
#endif

#ifdef BREAK_CLAIM
#define CLAIM(d, c) claimed[2 * (d) + (c) % 2] = (c) / 2 + 1; has = true
#else
#define CLAIM(d, c) atomic { /* Chooser::choose */ has = (NEXT(d, (c) % 2) == c); if :: has -> claimed[2 * (d) + (c) % 2]++ :: else fi }
#endif

inline send() { /* Chooser::choose, Chooser::give, copy */
  CLAIM(2 * r + 1, c)
  if
  :: has ->
    piece = base[1] + c;
#ifdef BREAK_FILLED
    filled[AT(r, piece)] = USE(piece) + 1;
#endif
    data[AT(r, piece)] = VALUE(r, k * PIECES + c);
    STORE_COUNT;
#ifndef BREAK_FILLED
    filled[AT(r, piece)] = USE(piece) + 1;
#endif
  :: else
  fi;
  piece = 0;
  has = false
}

inline receive() { /* Chooser::choose, Chooser::give, copy */
  CLAIM(2 * r, c)
  if
  :: has ->
    piece = base[0] + c;
#ifdef BREAK_EMPTIED
    emptied[AT(1 - r, piece)] = USE(piece) + 1;
#endif
    assert(data[AT(1 - r, piece)] == VALUE(1 - r, k * PIECES + c));
#ifdef COUNTS
    assert(seen == VALUE(1 - r, k * PIECES + c));
#endif
#ifndef BREAK_EMPTIED
    emptied[AT(1 - r, piece)] = USE(piece) + 1;
#endif
  :: else
  fi;
  piece = 0;
  has = false
}

inline moveOn() { /* Chooser::end */
  next[2 * r] = next[2 * r] + PIECES;
  next[2 * r + 1] = next[2 * r + 1] + PIECES
}

#define IS_CLAIMED(d) (NEXT(d, 0) >= PIECES && NEXT(d, 1) >= PIECES)
#define ARE_ALL_CLAIMED (IS_CLAIMED(2 * r) && IS_CLAIMED(2 * r + 1))
#ifdef BREAK_LEAVE
#define MAY_LEAVE true
#else
#define MAY_LEAVE (ended[r] + 1 < BLOCKS)
#endif

#define SENDS(column) \
    :: NEXT(2 * r + 1, column) < PIECES && IS_EMPTY(base[1] + NEXT(2 * r + 1, column)) && IS_OWN(NEXT(2 * r + 1, column)) -> \
      c = NEXT(2 * r + 1, column); \
      if \
      :: c < PIECES && IS_EMPTY(base[1] + c) -> send() \
      :: else \
      fi; \
      c = 0
#ifdef COUNTS
#define FORGET seenUse = 0; seen = 0
#else
#define FORGET skip
#endif
#define RECEIVES(column) \
    :: NEXT(2 * r, column) < PIECES && MAY_LOOK(column) && IS_OWN(NEXT(2 * r, column)) -> \
      c = NEXT(2 * r, column); \
      LOAD_COUNT; \
      if \
      :: c < PIECES && IS_FILLED(base[0] + c) && IS_COUNTED -> receive() \
      :: else \
      fi; \
      FORGET; \
      c = 0

proctype block(byte r; byte b) { /* launchTransfers */
  byte k, c, piece;
  byte base[2];
  bool has;
#ifdef COUNTS
  byte seenUse, seen;
#endif
  do
  :: k == ROUNDS -> break
  :: k < ROUNDS ->
    atomic { /* Chooser::enter */ kernel[r] == k && room[r] > 0 -> room[r]-- }
    base[0] = next[2 * r];
    base[1] = next[2 * r + 1];
#if defined(FAILS) && !defined(BREAK_LATE)
    if
    :: gaveUp[r] /* Chooser::isTooLate */ -> goto over
    :: else
    fi;
#endif
    do
#ifdef FAILS
    :: atomic { /* Chooser::mayWaitOn */ !ARE_ALL_CLAIMED -> gaveUp[r] = true }
      break
#endif
    SENDS(0)
    SENDS(1)
    RECEIVES(0)
    RECEIVES(1)
    :: ARE_ALL_CLAIMED ->
      atomic { /* Chooser::end */
        ended[r]++;
#ifdef BREAK_NUMBERS
        if
        :: ended[r] == 1 -> moveOn()
        :: else
        fi;
#endif
        if
        :: ended[r] == BLOCKS ->
#ifndef BREAK_NUMBERS
          moveOn();
#endif
          claimed[4 * r] = 0;
          claimed[4 * r + 1] = 0;
          claimed[4 * r + 2] = 0;
          claimed[4 * r + 3] = 0;
          ended[r] = 0
        :: else
        fi
      }
      break
#ifndef BREAK_OWN
    :: atomic { /* Chooser::mayLeave */ MAY_LEAVE && !ARE_ALL_CLAIMED -> ended[r]++ }
      break
#endif
    od;
  over:
    atomic { /* Chooser::end */
      room[r]++;
      gone[r]++;
      if
      :: gone[r] == BLOCKS ->
        gone[r] = 0;
        kernel[r]++
      :: else
      fi
    }
    k++
  od
}

init {
  atomic {
    run block(0, 0); run block(0, 1); run block(1, 0); run block(1, 1)
  }
}
