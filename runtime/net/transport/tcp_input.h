// What has come by one TCP connection: frames, of which each is placed once it is due.
#pragma once

#include "runtime/net/transport/frame.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace occl::net {

/// One thread's.
class TcpInput {
public:
  /// The socket stays open meanwhile.
  explicit TcpInput(int socket);

  /// So many bytes have come; 0: none have now, or never will. Those of a frame that is under way
  /// go to their place directly.
  uint64_t read();
  /// Why nothing will come any more; empty: it may.
  const std::string &whyEnded() const { return ended; }
  /// The peer has closed it: so nothing is wrong with it.
  bool isClosed() const { return closed; }
  /// Whether the header of the next frame is there.
  bool hasHeader();
  /// Of that, or of the frame that is under way.
  const FrameHeader &header() const { return next; }
  bool isUnderWay() const { return place != nullptr; }
  /// That frame is under way now: its bytes go to `place`. `isWord`: all at once.
  void begin(std::byte *place, bool isWord);
  /// Places what has come of it. True: all of it is there, and no frame is under way any more.
  bool finish();

private:
  const int socket;
  std::vector<std::byte> in; // [inBegin, inEnd) has come and was not looked at
  uint64_t inBegin = 0, inEnd = 0;
  FrameHeader next;
  bool isRead = false;        // `next`
  std::byte *place = nullptr; // where the next byte of the frame that is under way goes
  uint64_t left = 0;          // its bytes that have not come
  bool isWord = false;        // these are one
  std::string ended;
  bool closed = false;
};

} // namespace occl::net
