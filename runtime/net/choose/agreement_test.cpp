#include "runtime/net/choose/agreement.h"

#include "runtime/net/transport/testing/socket_pair.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace occl::net {
namespace {

using namespace std::chrono_literals;

/// What an attempt of the test does: it works already, and its trial is over as soon as this is.
struct Script {
  bool isOver = false;
  bool endsWithPeer = false;
};

class ScriptedAttempt final : public Attempt {
public:
  explicit ScriptedAttempt(const Script &script) : script(script) {}

  AttemptBytes address() const override { return {}; }
  Status connect(const AttemptBytes &) override { return {}; }
  StatusOr<bool> tryOut() override { return script.isOver; }
  bool worksAlready() const override { return true; }
  bool endsWithPeer() const override { return script.endsWithPeer; }
  std::string text() const override { return "scripted"; }
  std::unique_ptr<Endpoint> finish(bootstrap::Descriptor) override { return nullptr; }

private:
  const Script &script;
};

class ScriptedTransport final : public TransportKind {
public:
  explicit ScriptedTransport(const Script &script) : script(script) {}

  std::string_view title() const override { return "Test"; }
  StatusOr<OfferBytes> offer() override { return OfferBytes(); }
  StatusOr<std::unique_ptr<Attempt>> attempt(const RankPair &, const OfferBytes &,
                                             const OfferBytes &) override {
    return std::unique_ptr<Attempt>(std::make_unique<ScriptedAttempt>(script));
  }

private:
  const Script &script;
};

/// Both sides of a pair, in one thread: it says when each goes on.
class Pair : public ::testing::Test {
protected:
  struct End {
    Script script;
    std::vector<OwnTransport> own;
    Offer offer;
    std::unique_ptr<Agreement> agreement;
  };

  Pair() {
    auto sockets = socketPair();
    Descriptor of[2] = {std::move(sockets.first), std::move(sockets.second)};
    for (uint32_t rank : {0u, 1u}) {
      End &end = ends[rank];
      end.own.push_back({"test", std::make_unique<ScriptedTransport>(end.script)});
      end.offer = offerOf(end.own);
      RankPair pair;
      pair.rank = rank;
      pair.peer = 1 - rank;
      pair.socket = of[rank].get();
      end.agreement =
          std::make_unique<Agreement>(pair, std::move(of[rank]), end.own, end.offer, deadline);
    }
  }
  bool advance(uint32_t rank) { return ends[rank].agreement->advance(); }
  /// Until both try, and neither has told of it.
  void beginTrial() {
    for (int i = 0; i < 10; ++i) {
      EXPECT_FALSE(advance(0));
      EXPECT_FALSE(advance(1));
    }
  }

  const Deadline deadline{60s};
  End ends[2];
};

/// Long before the two seconds of a trial: nothing but the peer's word ends it.
TEST_F(Pair, ATrialOfWhoEndsWithItsPeerIsOverOncePeerHasTold) {
  ends[1].script.endsWithPeer = true;
  beginTrial();
  ends[0].script.isOver = true;
  EXPECT_FALSE(advance(0)); // tells
  EXPECT_TRUE(advance(1));
  EXPECT_TRUE(advance(0));
  for (End &end : ends) {
    const auto result = end.agreement->finish();
    ASSERT_TRUE(result.ok()) << result.status().message();
    EXPECT_EQ(result->how, "Test (scripted)");
  }
}

/// What comes to such a one may be under way when its peer has told.
TEST_F(Pair, ATrialOfAnotherOneIsNotOverOncePeerHasTold) {
  beginTrial();
  ends[0].script.isOver = true;
  EXPECT_FALSE(advance(0));
  for (int i = 0; i < 10; ++i)
    EXPECT_FALSE(advance(1));
  ends[1].script.isOver = true;
  EXPECT_TRUE(advance(1));
  EXPECT_TRUE(advance(0));
}

} // namespace
} // namespace occl::net
