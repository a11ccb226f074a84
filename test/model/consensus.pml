
/* How a majority confirms a smaller group between machines (runtime/control/membership/consensus.h):
 * ranks that see each other's records late or never, of which each may propose a value of its own,
 * and stop at any time. One choice; that a voter forgets nothing before it knows what was chosen is
 * consensus_test's.
 *
 * -DRANKS=n        so many; 3 unless said otherwise
 * -DBALLOTS=n      so many of all ranks together; 3 unless said otherwise
 * -DBREAK_OWN      a proposer takes its own value whatever has been accepted
 * -DBREAK_LAST     of several accepted values a proposer takes the one of the smallest ballot
 * -DBREAK_PROMISE  a voter accepts a ballot smaller than one that it has promised
 * -DBREAK_HALF     half of the ranks are enough, whichever
 */
#ifndef RANKS
#define RANKS 3
#endif
#ifndef BALLOTS
#define BALLOTS 3
#endif
#define MOST ((BALLOTS + 1) * RANKS + 1)

/* The records, and what each rank has of the others': [reader * RANKS + writer]. */
byte promised[RANKS], accepted[RANKS], ballot[RANKS];
bit isAccepting[RANKS];
byte promisedOf[RANKS * RANKS], acceptedOf[RANKS * RANKS], ballotOf[RANKS * RANKS];
bit isAcceptingOf[RANKS * RANKS];

byte value[MOST];      /* by ballot: what it proposes; a voter's acceptedValue is that of `accepted` */
byte acceptedBy[MOST]; /* by ballot: a bit for each rank that has ever accepted it */
byte numBallots, decided;

#define OF(w) (self * RANKS + (w))
#define DIFFERS(w)                                                                                \
  (promisedOf[OF(w)] != promised[w] || acceptedOf[OF(w)] != accepted[w] ||                        \
   ballotOf[OF(w)] != ballot[w] || isAcceptingOf[OF(w)] != isAccepting[w])
#ifdef BREAK_HALF
#define QUORUM(numFor, hasFirst) (2 * numFor >= RANKS)
#else
#define QUORUM(numFor, hasFirst) (2 * numFor > RANKS || (2 * numFor == RANKS && hasFirst))
#endif

/* A record gets there; some before it may not have. */
inline see(w) { /* Network::shrunk, MajorityAgreement::look */
  promisedOf[OF(w)] = promised[w];
  acceptedOf[OF(w)] = accepted[w];
  ballotOf[OF(w)] = ballot[w];
  isAcceptingOf[OF(w)] = isAccepting[w];
}

/* The own record is part of what a rank looks at. */
inline propose(begins) { /* Consensus::propose */
  largest = 0;
  w = 0;
  do
  :: w < RANKS ->
    if
    :: promisedOf[OF(w)] > largest -> largest = promisedOf[OF(w)]
    :: else
    fi;
    if
    :: ballotOf[OF(w)] > largest -> largest = ballotOf[OF(w)]
    :: else
    fi;
    w++
  :: else -> break
  od;
  if
  :: begins && (ballot[self] == 0 || largest > ballot[self]) ->
    ballot[self] = (largest / RANKS + 1) * RANKS + self;
    isAccepting[self] = 0;
    numBallots++
  :: else
  fi;
  numFor = 0;
  hasFirst = 0;
  last = 0;
  w = 0;
  do
  :: w < RANKS ->
    if
    :: promisedOf[OF(w)] == ballot[self] ->
      numFor++;
      hasFirst = hasFirst || w == 0;
      if
#ifdef BREAK_LAST
      :: acceptedOf[OF(w)] != 0 && (last == 0 || acceptedOf[OF(w)] < last) ->
#else
      :: acceptedOf[OF(w)] > last ->
#endif
        last = acceptedOf[OF(w)]
      :: else
      fi
    :: else
    fi;
    w++
  :: else -> break
  od;
  if
  :: ballot[self] != 0 && !isAccepting[self] && promised[self] <= ballot[self] &&
       QUORUM(numFor, hasFirst) ->
#ifdef BREAK_OWN
    value[ballot[self]] = self + 1;
#else
    value[ballot[self]] = (last != 0 -> value[last] : self + 1);
#endif
    isAccepting[self] = 1
  :: else
  fi;
  see(self)
}

inline vote() { /* Consensus::vote, Consensus::learn */
  w = 0;
  do
  :: w < RANKS ->
    if
    :: ballotOf[OF(w)] > promised[self] -> promised[self] = ballotOf[OF(w)]
    :: else
    fi;
    w++
  :: else -> break
  od;
  w = 0;
  do
  :: w < RANKS ->
    if
#ifdef BREAK_PROMISE
    :: isAcceptingOf[OF(w)] && ballotOf[OF(w)] > accepted[self] ->
#else
    :: isAcceptingOf[OF(w)] && ballotOf[OF(w)] == promised[self] ->
#endif
      accepted[self] = ballotOf[OF(w)];
      acceptedBy[accepted[self]] = acceptedBy[accepted[self]] | (1 << self)
    :: else
    fi;
    w++
  :: else -> break
  od;
  see(self)
}

/* No two values are chosen, whoever learns of it. */
inline check() { /* none: an assertion */
  last = accepted[self];
  numFor = 0;
  w = 0;
  do
  :: w < RANKS -> numFor = numFor + ((acceptedBy[last] >> w) & 1); w++
  :: else -> break
  od;
  if
  :: last != 0 && QUORUM(numFor, (acceptedBy[last] & 1)) ->
    assert(decided == 0 || decided == value[last]);
    decided = value[last]
  :: else
  fi
}

/* What differs between two steps is in the records alone. */
inline forget() { /* none: locals */
  w = 0;
  largest = 0;
  numFor = 0;
  last = 0;
  hasFirst = 0
}

#define OTHER(distance) ((self + distance) % RANKS)
#define SEE(distance)                                                                             \
  OTHER(distance) != self && DIFFERS(OTHER(distance)) -> see(OTHER(distance))

proctype Rank(byte self) { /* MajorityAgreement::vote, MajorityAgreement::agree, MajorityAgreement::conclude */
  byte w, largest, numFor, last;
  bit hasFirst;
end:
  do
  :: d_step { /* Network::shrunk, MajorityAgreement::look */
       SEE(1)
     }
  :: d_step { /* Network::shrunk, MajorityAgreement::look */
       SEE(2)
     }
  :: d_step { /* Network::shrunk, MajorityAgreement::look */
       SEE(3)
     }
  :: d_step { /* Consensus::step */
       numBallots < BALLOTS;
       propose(1);
       vote();
       check();
       forget()
     }
  :: d_step { /* Consensus::step */
       propose(0);
       vote();
       check();
       forget()
     }
  od
}

init { /* the program */
  byte r;
  atomic { /* the program */
    do
    :: r < RANKS -> run Rank(r); r++
    :: else -> break
    od
  }
}
