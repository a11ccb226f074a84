// Sends and receives that are matched by rank and tag, over transfers that are matched in order.
#pragma once

#include <array>
#include <deque>
#include <list>
#include <vector>

#include "work.h"

namespace occl_torch {

/// A message is two transfers: a header with tag, size and type, then the data. A rank takes the
/// header of a peer while somebody waits for a message that may be of this peer; the data go to
/// the first receive that fits, else to memory of their own until one comes. No call waits for
/// another rank, whatever the size of a message. The communicator is for messages alone, and has no
/// deadline: headers may be waited for as long as it takes. Thread-safe; owned by shared_ptr.
class Messages : public Ticking, public std::enable_shared_from_this<Messages> {
public:
  static constexpr int kAnySource = -1;

  Messages(std::shared_ptr<Communicator> comm, int rank, int size);

  WorkPtr send(at::Tensor tensor, int peer, int tag, std::chrono::milliseconds timeout);
  WorkPtr receive(at::Tensor tensor, int peer, int tag, std::chrono::milliseconds timeout);
  /// This rank takes part no more: says so to those who may wait for its messages, and ends the
  /// communicator unless a header is still waited for.
  void leave();
  void abort(const std::string &why) { comm_->abort(why); }
  unsigned tick() override;

private:
  using Clock = std::chrono::steady_clock;
  struct Header {
    uint32_t magic;
    uint32_t kind; // of message or farewell
    int32_t tag;
    int32_t type; // at::ScalarType
    uint64_t bytes;
  };
  struct Send;
  struct Receive;
  struct Arrival;
  struct Peer {
    Header header;
    bool armed = false; // its next header is being received
    bool left = false;
    unsigned arriving = 0; // data being received
    std::list<std::shared_ptr<Arrival>> unclaimed;
  };
  struct HeaderCallback;

  WorkPtr newWork(c10d::OpType type, const char *name, at::Tensor tensor, bool output);
  bool trySend(std::shared_ptr<Send> send);
  void sendEnded(std::shared_ptr<Send> send, occlResult_t result);
  void post(std::shared_ptr<Receive> receive);
  void arm();
  bool tryArm(int peer);
  void headerCame(int peer, occlResult_t result);
  std::shared_ptr<Arrival> match(int peer);
  bool tryArrival(std::shared_ptr<Arrival> arrival);
  void arrived(std::shared_ptr<Arrival> arrival, occlResult_t result);
  void deliver(const std::shared_ptr<Arrival> &arrival);
  void failPosted(int peer, const std::string &why);
  void watch();
  std::string overdue();

  std::shared_ptr<Communicator> comm_;
  std::shared_ptr<Strand> strand_;
  const int rank_, size_;
  // Everything below is accessed in steps of the strand only.
  std::vector<Peer> peers_;
  std::list<std::shared_ptr<Receive>> posted_; // not matched yet
  std::list<std::shared_ptr<Send>> sending_;
  std::list<std::shared_ptr<Arrival>> receiving_;
  std::deque<std::shared_ptr<Send>> waiting_; // to be sent
  uint64_t arrivals_ = 0;
  bool used_ = false, watched_ = false;
};

} // namespace occl_torch
