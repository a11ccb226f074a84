/* Transfers of two ranks on devices (docs/decisions/gpu/device-transfers.md): each sends PIECES to
 * the other one in each of ROUNDS kernels, through SLOTS slots, and receives as many. A kernel has
 * EACH groups of threads for either direction; the device has room for ROOM groups of a rank.
 *
 * As it begins (PieceChooser::begin), a group claims the piece that is its own, whose slot may not
 * be ready: it holds it. It does that one once it is ready, and meanwhile any other one that nobody
 * has and whose slot is ready (PieceChooser::look). Pieces 0 and 1 of a direction are claimed in a
 * mask (`taken`), those behind by column: piece i is in column i % 2 (`claimed`,
 * PieceChooser::take). When all is claimed and what it has claimed is done, a group ends
 * (PieceChooser::end). If each piece has a group (-DSPREAD, with as many groups as pieces), it ends
 * as soon as its own is done, or was taken by somebody else, and all groups have begun
 * (PieceChooser::haveAllBegun). It may make room at any time, after which another one of its kernel
 * finds it, unless it is the last one that has not ended; before that it gives back what it holds,
 * also if it then has to stay (PieceChooser::makeRoom). Of that the last one to end has to know
 * (`hasLeft`, in the code kLeft in `ended`): it goes on until nothing is open. Then it moves the
 * numbers on (PieceChooser::moveOn). When a kernel is over, what it had to do is done.
 *
 * Memory is sequentially consistent: the code fences before each word that it stores for the other
 * rank. A group does one piece after the other; with lines it goes ahead of its copies.
 *
 * -DLINES  pieces go in lines: the word that says that a slot is filled is stored before the data
 *          (Leader::give), which have a flag made of the use (PieceLines::store). Who has seen the
 *          word claims the piece and waits for the flag (Carrier::load); meanwhile it may claim a
 *          send and say that this has come, whose data follow after those it waits for.
 * -DSMALL  likewise, and the first kernel of rank 0 is one thread block that claims nothing: some
 *          warps each direction (SmallDirection), which say that slots are emptied when they have
 *          all.
 * -DFAILS  any group may give up whenever it looks for a piece, while it waits for lines, or (its
 *          process has died) before it stores them; what its kernel leaves behind must mislead
 *          nobody, and keep nobody.
 * -DCOUNTS the count of a transfer, which a receiver loads beside the word that says that the slot
 *          is filled, is looked at as well.
 *
 * -DBREAK_FILLED   the slot is said to be filled before it is, without lines (Leader::tellOfCopied)
 * -DBREAK_EMPTIED  the slot is said to be emptied before it is (Leader::tellOfCopied)
 * -DBREAK_READY    what is not read yet is written over (PieceChooser::isFree)
 * -DBREAK_CLAIM    a piece is claimed without a look whether somebody has it (PieceChooser::take)
 * -DBREAK_LEAVE    the last group of a kernel leaves, too (PieceChooser::makeRoom)
 * -DBREAK_RETURN   who makes room keeps the piece that it holds (PieceChooser::makeRoom)
 * -DBREAK_EARLY    the last group ends although others have made room (PieceChooser::end)
 * -DBREAK_HOLD     who holds a piece that is not ready does no other one (PieceChooser::look), and
 *                  gives it back only if it may leave (PieceChooser::makeRoom); either alone does
 *                  no harm
 * -DBREAK_PATIENCE who has done the piece that it held does none of other columns as long as its
 *                  own one is not over (PieceChooser::mayHave)
 * -DBREAK_OWN      each group has pieces of its own, and waits for them
 * -DBREAK_NUMBERS  the first group that ends moves the numbers on (PieceChooser::end)
 * -DBREAK_LATE     a kernel begins although one before it gave up (PieceChooser::isTooLate)
 * -DBREAK_COUNT    the words of a slot that was never filled are those of its first use
 *                  (pair_slots.h, countWord)
 * -DBREAK_FLAG     data in lines are read without a look at the flag (Carrier::load)
 * -DBREAK_FLAGS    lines have the same flag in every use (pair_slots.h, lineFlag)
 * -DBREAK_HEADER   lines are claimed, and waited for, before they are said to come
 *                  (PieceChooser::hasCome)
 * -DBREAK_BUSY     who waits for lines and has claimed a second piece does not look whether it is
 *                  to give up (PieceChooser::afterLook)
 * With -DSMALL and more pieces than slots nobody can go on: GroupLayout::of makes no such kernel.
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
#ifndef EACH
#define EACH 1
#endif
#define GROUPS (2 * EACH)
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifdef SMALL
#define LINES
#endif

#define AT(source, piece) ((source) * SLOTS + (piece) % SLOTS)
#define USE(piece) ((piece) / SLOTS)
#define VALUE(source, piece) ((source) * 100 + (piece))

byte data[2 * SLOTS] = 255; /* at the destination, by source */
byte filled[2 * SLOTS], emptied[2 * SLOTS];
/* Directions of a rank: 2 * rank, and one more what it sends. */
byte next[4];
bool taken[8];   /* of pieces 0 and 1 */
byte claimed[8]; /* of those behind, two columns */
#define COLUMN(d, column) (2 * (d) + (column))
#define NEXT(d, column) /* piece */ \
    (taken[COLUMN(d, column)] -> 2 + claimed[COLUMN(d, column)] * 2 + (column) : (column))
byte begun[2], ended[2], gone[2], kernel[2], room[2] = ROOM;
bool hasLeft[2];

#ifdef LINES
byte flag[2 * SLOTS];
#ifdef BREAK_FLAGS
#define FLAG(piece) 1
#else
#define FLAG(piece) (USE(piece) + 1)
#endif
#ifdef BREAK_FLAG
#define HAVE_LINES(piece) true
#else
#define HAVE_LINES(piece) (flag[AT(1 - r, piece)] == FLAG(piece))
#endif
#define STORE_LINES(c) \
    atomic { /* PieceLines::store */ \
      data[AT(r, base[1] + (c))] = VALUE(r, k * PIECES + (c)); \
      flag[AT(r, base[1] + (c))] = FLAG(base[1] + (c)) \
    }
#define SAY_FILLED_FIRST
#elif defined(BREAK_FILLED)
#define SAY_FILLED_FIRST
#endif

#ifdef FAILS
bool gaveUp[2];
#define IS_FAILED(r) gaveUp[r]
#define GIVES_UP :: atomic { /* PieceChooser::afterLook */ gaveUp[r] = true; goto over }
#ifdef BREAK_BUSY
#define ENDS_WAIT \
    :: atomic { /* Carrier::load */ (ahead == 0 || gaveUp[r]) -> gaveUp[r] = true; goto over }
#else
#define ENDS_WAIT GIVES_UP
#endif
#define MAY_DIE \
    if \
    :: atomic { /* none: its process has died */ gaveUp[r] = true; goto over } \
    :: skip \
    fi
#else
#define IS_FAILED(r) false
#define GIVES_UP
#define ENDS_WAIT
#define MAY_DIE skip
#endif

#ifdef COUNTS
byte countUse[2 * SLOTS], count[2 * SLOTS];
#ifdef BREAK_COUNT
#define COUNT_USE(piece) USE(piece)
#else
#define COUNT_USE(piece) (USE(piece) + 1)
#endif
#define STORE_COUNT(c) \
    atomic { /* Leader::give, Leader::tellOfCopied */ \
      countUse[AT(r, base[1] + (c))] = COUNT_USE(base[1] + (c)); \
      count[AT(r, base[1] + (c))] = VALUE(r, k * PIECES + (c)) \
    }
#define LOAD_COUNT \
    seenUse = countUse[AT(1 - r, base[0] + c)]; \
    seen = count[AT(1 - r, base[0] + c)]
#define IS_COUNTED (seenUse == COUNT_USE(base[0] + c))
#define FORGET_COUNT seenUse = 0; seen = 0
#define MAY_LOOK(c) true
#else
#define STORE_COUNT(c) skip
#define LOAD_COUNT skip
#define IS_COUNTED true
#define FORGET_COUNT skip
#define MAY_LOOK(c) IS_FILLED(base[0] + (c))
#endif

#ifdef BREAK_READY
#define IS_FREE(piece) true
#else
#define IS_FREE(piece) (emptied[AT(r, piece)] >= USE(piece))
#endif
#ifdef BREAK_HEADER
#define IS_FILLED(piece) true
#else
#define IS_FILLED(piece) (filled[AT(1 - r, piece)] > USE(piece))
#endif

#ifdef BREAK_OWN
#define MAY_DO(d, c) ((c) % GROUPS == g)
#elif defined(BREAK_HOLD)
#define MAY_DO(d, c) (!isHolder && !MAY_END_EARLY)
#elif defined(BREAK_PATIENCE)
#define IS_IN_OWN_COLUMN(d, c) ((d) == OWN_DIRECTION && (c) % 2 == OWN % 2)
#define IS_OWN_COLUMN_OVER (NEXT(2 * r + OWN_DIRECTION, OWN % 2) >= PIECES)
#define MAY_DO(d, c) \
    (!MAY_END_EARLY && (!isStubborn || IS_IN_OWN_COLUMN(d, c) || IS_OWN_COLUMN_OVER))
#else
#define MAY_DO(d, c) (!MAY_END_EARLY)
#endif
#define OWN_DIRECTION (g / EACH)
#define OWN (g % EACH)
#define IS_CLAIMED(d) (NEXT(d, 0) >= PIECES && NEXT(d, 1) >= PIECES)
#define ARE_ALL_CLAIMED (IS_CLAIMED(2 * r) && IS_CLAIMED(2 * r + 1))
#define MAY_END_EARLY (!isHolder && endsEarly && begun[r] == GROUPS)
#define IS_AT_END (!isHolder && (MAY_END_EARLY || ARE_ALL_CLAIMED))
#ifdef BREAK_LEAVE
#define MAY_LEAVE true
#else
#define MAY_LEAVE (ended[r] + 1 < GROUPS)
#endif
#ifdef BREAK_HOLD
#define MAY_RETURN MAY_LEAVE
#else
#define MAY_RETURN true
#endif
#ifdef BREAK_EARLY
#define IS_LEFT false
#else
#define IS_LEFT hasLeft[r]
#endif

#define MARK(d, c) \
    if \
    :: (c) < 2 -> taken[2 * (d) + (c)] = true \
    :: else -> claimed[2 * (d) + (c) % 2] = (c) / 2 \
    fi

inline take() { /* PieceChooser::take */
#ifdef BREAK_CLAIM
  MARK(2 * r + d, c);
  has = true
#else
  atomic { /* PieceChooser::take */
    has = (NEXT(2 * r + d, c % 2) == c);
    if
    :: has -> MARK(2 * r + d, c)
    :: else
    fi
  }
#endif
}

/* A look at the next piece of a column. */
#define IS_SEND_READY(column) \
    (MAY_DO(1, NEXT(2 * r + 1, column)) && NEXT(2 * r + 1, column) < PIECES && \
     IS_FREE(base[1] + NEXT(2 * r + 1, column)))
#define SENDS(column) \
    :: atomic { /* PieceChooser::look, PieceChooser::isFree */ \
         IS_SEND_READY(column) -> \
         d = 1; \
         c = NEXT(2 * r + 1, column) \
       }
#define RECEIVES(column) \
    :: atomic { /* PieceChooser::look, PieceChooser::hasCome */ \
         MAY_DO(0, NEXT(2 * r, column)) && NEXT(2 * r, column) < PIECES && \
             MAY_LOOK(NEXT(2 * r, column)) -> \
         c = NEXT(2 * r, column); \
         LOAD_COUNT \
       }
/* The same at what it holds. */
#define SENDS_HELD \
    :: atomic { /* PieceChooser::isHeldReady */ \
         isHolder && OWN_DIRECTION == 1 && IS_FREE(base[1] + OWN) -> \
         d = 1; \
         c = OWN; \
         isHeld = true \
       }
#define RECEIVES_HELD \
    :: atomic { /* PieceChooser::isHeldReady */ \
         isHolder && OWN_DIRECTION == 0 && MAY_LOOK(OWN) -> \
         c = OWN; \
         isHeld = true; \
         LOAD_COUNT \
       }

inline send() { /* PieceChooser::give, Carrier::carry, Leader::tellOfCopied */
#ifdef SAY_FILLED_FIRST
  STORE_COUNT(c);
  filled[AT(r, base[1] + c)] = USE(base[1] + c) + 1;
#endif
#ifdef LINES
  MAY_DIE;
  STORE_LINES(c)
#else
  data[AT(r, base[1] + c)] = VALUE(r, k * PIECES + c);
#ifndef SAY_FILLED_FIRST
  STORE_COUNT(c);
  filled[AT(r, base[1] + c)] = USE(base[1] + c) + 1
#endif
#endif
}

#ifdef LINES
/* Who waits for lines may claim a send, also the one that it holds, and say that it has come. */
#define GOES_AHEAD(column) \
    :: atomic { /* PieceChooser::look, PieceChooser::take */ \
         ahead == 0 && IS_SEND_READY(column) -> \
         ahead = NEXT(2 * r + 1, column) + 1; \
         MARK(2 * r + 1, ahead - 1) \
       } \
       STORE_COUNT(ahead - 1); \
       filled[AT(r, base[1] + ahead - 1)] = USE(base[1] + ahead - 1) + 1

inline load() { /* Carrier::load, PieceLines::look, Leader::give */
  do
  :: HAVE_LINES(base[0] + c) -> break
  ENDS_WAIT
  GOES_AHEAD(0)
  GOES_AHEAD(1)
  :: atomic { /* PieceChooser::isHeldReady, PieceChooser::look */
       ahead == 0 && isHolder && OWN_DIRECTION == 1 && IS_FREE(base[1] + OWN) ->
       ahead = OWN + 1;
       isHolder = false
     }
     STORE_COUNT(ahead - 1);
     filled[AT(r, base[1] + ahead - 1)] = USE(base[1] + ahead - 1) + 1
  od
}
#endif

inline receive() { /* PieceChooser::give, Carrier::carry, Leader::tellOfCopied */
#ifdef BREAK_EMPTIED
  emptied[AT(1 - r, base[0] + c)] = USE(base[0] + c) + 1;
#endif
#ifdef LINES
  load();
#endif
  assert(data[AT(1 - r, base[0] + c)] == VALUE(1 - r, k * PIECES + c));
#ifdef COUNTS
  assert(seen == VALUE(1 - r, k * PIECES + c));
#endif
#ifndef BREAK_EMPTIED
  emptied[AT(1 - r, base[0] + c)] = USE(base[0] + c) + 1;
#endif
#ifdef LINES
  if
  :: ahead != 0 ->
    STORE_LINES(ahead - 1);
    ahead = 0
  :: else
  fi
#endif
}

inline moveOn() { /* PieceChooser::moveOn */
  next[2 * r] = next[2 * r] + PIECES;
  next[2 * r + 1] = next[2 * r + 1] + PIECES
}

/* Pieces of a kernel that is over. */
#define WAS_SENT(piece) (filled[AT(r, piece)] > USE(piece))
#define WAS_RECEIVED(piece) (emptied[AT(1 - r, piece)] > USE(piece))
#define IS_DONE(c) ((c) >= PIECES || (WAS_SENT(k * PIECES + (c)) && WAS_RECEIVED(k * PIECES + (c))))

#ifdef SMALL
#define IS_SMALL (r == 0 && k == 0)
inline small() { /* SmallDirection::run, SmallDirection::doPiece */
  base[0] = next[2 * r];
  base[1] = next[2 * r + 1];
  do
  :: c < PIECES && g == 1 && IS_FREE(base[1] + c) /* SmallDirection::awaitCredit */ ->
    filled[AT(r, base[1] + c)] = USE(base[1] + c) + 1; /* SmallDirection::send */
    STORE_LINES(c);
    c++
  :: atomic { /* SmallDirection::receive */
       c < PIECES && g == 0 && IS_FILLED(base[0] + c) && HAVE_LINES(base[0] + c) ->
       assert(data[AT(1 - r, base[0] + c)] == VALUE(1 - r, k * PIECES + c));
       c++
     }
  :: c == PIECES -> break
  od;
  c = 0;
  do
  :: c < PIECES && g == 0 -> /* SmallDirection::end */
    emptied[AT(1 - r, base[0] + c)] = USE(base[0] + c) + 1;
    c++
  :: c == PIECES || g == 1 -> break
  od;
  c = 0;
  next[2 * r + g] = next[2 * r + g] + PIECES
}
#endif

proctype group(byte r; byte g) { /* launchTransfers, launchSmallTransfers */
  byte k, c, d;
  byte base[2];
  bool has, isHeld, isHolder, endsEarly, isLast;
#ifdef LINES
  byte ahead;
#endif
#ifdef BREAK_PATIENCE
  bool isStubborn;
#endif
#ifdef COUNTS
  byte seenUse, seen;
#endif
  do
  :: k == ROUNDS -> break
  :: k < ROUNDS ->
    atomic { /* none: the device has room */ kernel[r] == k && room[r] > 0 -> room[r]-- }
#ifdef SMALL
    if
    :: IS_SMALL ->
      small();
      goto over
    :: else
    fi;
#endif
    atomic { /* PieceChooser::begin */
      begun[r]++;
      base[0] = next[2 * r];
      base[1] = next[2 * r + 1];
#ifndef BREAK_OWN
      isHolder = !taken[2 * (2 * r + OWN_DIRECTION) + OWN];
      taken[2 * (2 * r + OWN_DIRECTION) + OWN] = true;
#endif
#ifdef SPREAD
      endsEarly = true;
#endif
#if defined(FAILS) && !defined(BREAK_LATE)
      if
      :: gaveUp[r] /* PieceChooser::isTooLate */ -> goto over
      :: else
      fi
#endif
    }
    do
    GIVES_UP
    :: if
       SENDS_HELD
       RECEIVES_HELD
       SENDS(0)
       SENDS(1)
       RECEIVES(0)
       RECEIVES(1)
       fi;
       if
       :: d == 0 && !(IS_FILLED(base[0] + c) && IS_COUNTED)
       :: else ->
         if
         :: isHeld ->
           isHolder = false;
#ifdef BREAK_PATIENCE
           isStubborn = true;
#endif
           has = true
         :: else -> take()
         fi
       fi;
       if
       :: has && d == 1 -> send()
       :: has && d == 0 -> receive()
       :: else
       fi;
       atomic { /* Leader::tellOfCopied */
         FORGET_COUNT;
         has = false;
         isHeld = false;
         c = 0;
         d = 0
       }
    :: IS_AT_END -> /* PieceChooser::look */
       atomic { /* PieceChooser::end */
         if
         :: isLast
         :: else ->
           ended[r]++;
#ifdef BREAK_NUMBERS
           if
           :: ended[r] == 1 -> moveOn()
           :: else
           fi;
#endif
           isLast = (ended[r] == GROUPS);
           if
           :: isLast && IS_LEFT ->
             endsEarly = false;
             goto again
           :: else
           fi
         fi;
         if
         :: isLast ->
#ifndef BREAK_NUMBERS
           moveOn();
#endif
           taken[4 * r] = false;
           taken[4 * r + 1] = false;
           taken[4 * r + 2] = false;
           taken[4 * r + 3] = false;
           claimed[4 * r] = 0;
           claimed[4 * r + 1] = 0;
           claimed[4 * r + 2] = 0;
           claimed[4 * r + 3] = 0;
           hasLeft[r] = false;
           begun[r] = 0;
           ended[r] = 0
         :: else
         fi;
         goto over
       }
  again:
       skip
#ifndef BREAK_OWN
    :: atomic { /* PieceChooser::makeRoom */
         isHolder && MAY_RETURN ->
#ifndef BREAK_RETURN
         taken[2 * (2 * r + OWN_DIRECTION) + OWN] = false;
#endif
         isHolder = false;
         endsEarly = false
       }
    :: atomic { /* PieceChooser::makeRoom */
         !isHolder && MAY_LEAVE ->
         ended[r]++;
         hasLeft[r] = true;
         goto over
       }
#endif
    od;
  over:
    atomic { /* none: the device has room again */
      room[r]++;
      gone[r]++;
      isHolder = false;
      endsEarly = false;
      isLast = false;
#ifdef LINES
      ahead = 0;
#endif
#ifdef BREAK_PATIENCE
      isStubborn = false;
#endif
      c = 0;
      d = 0;
      has = false;
      isHeld = false;
      FORGET_COUNT;
      if
      :: gone[r] == GROUPS ->
        assert(IS_FAILED(r) || (IS_DONE(0) && IS_DONE(1) && IS_DONE(2)));
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
    run group(0, 0); run group(0, 1); run group(1, 0); run group(1, 1);
#if EACH > 1
    run group(0, 2); run group(0, 3); run group(1, 2); run group(1, 3)
#endif
  }
}
