// Shapes of a rank by plan and count, its lanes' memory, and the daemon's number of each pair of
// the two.
#include "runtime/cuda/lanes/device_lanes.h"

#include "runtime/cuda/resident/kernel/kernel.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

namespace occl::cuda {

namespace {

/// Shapes that a rank keeps the tables of.
constexpr size_t kMaxShapes = 1024;
/// Of a lane's counters.
constexpr uint64_t kCountBytes = resident::kMaxTasks * sizeof(resident::BlockCounts);

static_assert(kLaneKernels == resident::kNumKernels);

/// What is the same of all calls of the shape.
std::shared_ptr<const daemon::CollectiveSpec> nameless(const daemon::CollectiveSpec &spec) {
  auto shape = std::make_shared<daemon::CollectiveSpec>();
  shape->plan = spec.plan;
  shape->planHash = spec.planHash;
  shape->count = spec.count;
  shape->type = spec.type;
  shape->op = spec.op;
  shape->rounds = spec.rounds;
  return shape;
}

} // namespace

DeviceLanes::DeviceLanes(const ShapeContext &context, uint64_t firstCall, DaemonOf daemonOf,
                         TenantOf tenantOf)
    : context(context), firstCall(firstCall), daemonOf(std::move(daemonOf)),
      tenantOf(std::move(tenantOf)) {
  // Kernels of Simple are every other one.
  static_assert(OrderedGeometry::kLargeLanes == kLaneKernels / 2 * kMaxLargeLanes &&
                OrderedGeometry::kMostLanes == kMaxSmallLanes);
  const OrderedGeometry::Memory memory = {context.memory.bytes(), context.memory.arenaBytes()};
  const bool hasWideLines = context.memory.hasWideLines();
  small = OrderedGeometry::numLanes(context.numRanks, memory, hasWideLines);
  large = OrderedGeometry::forLargeLane(context.numRanks, memory, hasWideLines);
  // Each large lane has its place, or there are none.
  const auto isReserved = [this](Reserved &lane) { return reserve(lane, *large); };
  if (!large || std::ranges::all_of(reserved, isReserved))
    return;
  for (Reserved &lane : reserved)
    giveBack(lane);
  large.reset();
}

bool DeviceLanes::reserve(Reserved &lane, const OrderedGeometry &sizes) {
  lane.connectors = OrderedConnectors::take(context, sizes);
  lane.counts = context.onDevice.allocate(kCountBytes);
  return lane.connectors && lane.counts;
}

void DeviceLanes::giveBack(Reserved &lane) {
  if (lane.connectors) {
    context.space.release(lane.connectors->messages);
    context.onDevice.release(lane.connectors->numbers);
  }
  if (lane.counts)
    context.onDevice.release(*lane.counts);
  lane = {};
}

/// Null: the lane is a small one.
DeviceLanes::Reserved *DeviceLanes::reservedFor(LaneName lane) {
  if (!lane.isLarge())
    return nullptr;
  return &reserved[lane.kernel / 2 * kMaxLargeLanes + lane.number - kMaxSmallLanes];
}

OrderedGeometry DeviceLanes::geometry(LaneName lane) const {
  return lane.isLarge() ? *large : geometry(resident::isForLines(lane.kernel));
}

StatusOr<std::shared_ptr<LaneShape>> DeviceLanes::shapeFor(const daemon::CollectiveSpec &spec,
                                                           const PartGates *parts) {
  // Ids do not matter: calls of one plan, count, type and operation share a shape.
  const Key key = {spec.planHash, spec.count, spec.type, spec.op, parts};
  if (auto found = shapes.find(key); found != shapes.end()) {
    found->second->lastUse = ++uses;
    return found->second;
  }
  // Tables take memory: with too many shapes the oldest one goes.
  if (shapes.size() >= kMaxShapes && !forgetOldest())
    return Status(StatusCode::Again, "calls of " + std::to_string(kMaxShapes) +
                                         " kinds, counts and types are in flight");
  auto made = makeShape(spec, geometry(spec.plan->protocol != plan::Protocol::Simple));
  if (!made.ok())
    return made.status();
  auto shape = std::make_shared<LaneShape>(
      nameless(spec), plan::Aliasing(*spec.plan, context.rank, spec.count, sizeOf(spec.type)),
      std::move(*made));
  shape->kernel = resident::kernelFor(shape->shape->collective());
  // Large lanes are for what small ones execute in several tiles, if they take fewer. All ranks
  // have the tables of both before anybody counts on such a call.
  constexpr uint64_t kFewTiles = 3;
  if (large && !resident::isForLines(shape->kernel) && shape->shape->numTiles() > kFewTiles) {
    if (Status status = makeLarge(*shape); !status.ok())
      return status;
    shape->isLarge = 2 * shape->large->numTiles() <= shape->shape->numTiles();
  }
  shape->parts = parts;
  shape->lastUse = ++uses;
  shapes.emplace(key, shape);
  return shape;
}

StatusOr<std::shared_ptr<const interpreter::Binding>>
DeviceLanes::bind(const daemon::CollectiveSpec &spec) const {
  return bindMessages(*spec.plan, geometry(spec.plan->protocol != plan::Protocol::Simple),
                      Shape::requestFor(context, spec, Kernels::Resident));
}

Status DeviceLanes::fits(const daemon::CollectiveSpec &spec, uint32_t mostBlocks) const {
  const OrderedGeometry sizes = geometry(spec.plan->protocol != plan::Protocol::Simple);
  DeviceBindRequest request = Shape::requestFor(context, spec, Kernels::Resident);
  // Every rank's program is bound, since all ranks must come to the same answer.
  for (request.rank = 0; request.rank < context.numRanks; ++request.rank) {
    auto bound = bindForDevice(*spec.plan, sizes, request);
    if (!bound.ok())
      return bound.status();
    const uint32_t blocks = bound->bound->program().numBlocks;
    if (blocks > std::min(mostBlocks, resident::kMaxTasks))
      return {StatusCode::InvalidArgument,
              "plan '" + spec.plan->name + "' has " + std::to_string(blocks) +
                  " thread blocks in so many rounds on rank " + std::to_string(request.rank)};
  }
  return {};
}

/// Without memory, old ones go.
StatusOr<std::unique_ptr<OrderedShape>> DeviceLanes::makeShape(const daemon::CollectiveSpec &spec,
                                                               const OrderedGeometry &sizes) {
  for (;;) {
    auto made = OrderedShape::make(context, sizes, spec, Kernels::Resident);
    if (made.ok() || made.status().code() != StatusCode::Again || !forgetOldest())
      return made;
  }
}

/// Of those that no call has, the one that was used the longest ago. Its memory is another's as
/// soon as executors have nothing of it near them any more, which their numbers see to.
bool DeviceLanes::forgetOldest() {
  auto oldest = shapes.end();
  for (auto known = shapes.begin(); known != shapes.end(); ++known)
    if (known->second.use_count() == 1 && !known->second->parts &&
        (oldest == shapes.end() || known->second->lastUse < oldest->second->lastUse))
      oldest = known;
  if (oldest == shapes.end())
    return false;
  removeNumbers(*oldest->second);
  shapes.erase(oldest);
  return true;
}

/// Messages are larger in large lanes, so these have tables of their own.
Status DeviceLanes::makeLarge(LaneShape &shape) {
  auto made = makeShape(*shape.spec, *large);
  if (made.ok())
    shape.large = std::move(*made);
  return made.ok() ? Status() : made.status();
}

void DeviceLanes::removeNumbers(LaneShape &shape) {
  auto daemon = daemonOf(shape.kernel);
  for (const auto &[lane, number] : shape.numbers)
    if (daemon.ok())
      (*daemon)->remove(number.number);
  shape.numbers.clear();
}

void DeviceLanes::forget(const PartGates *parts) {
  if (!parts)
    return;
  std::erase_if(shapes, [&](const auto &known) {
    if (known.first.parts != parts)
      return false;
    removeNumbers(*known.second);
    return true;
  });
}

StatusOr<DeviceLanes::Lane *> DeviceLanes::laneAt(LaneName name) {
  static_assert(OrderedConnectors::kOfStreams == 0 &&
                1 + resident::kNumKernels * kMaxLanes == kMostConnectors);
  // Lanes are made when they are first used, and stay.
  Lane &lane = lanes[name.kernel][name.number];
  if (lane.connectors)
    return &lane;
  // What a try that failed has taken is the next one's.
  const Reserved *had = reservedFor(name);
  if (!lane.taken)
    lane.taken = had ? had->counts : context.onDevice.allocate(kCountBytes);
  if (!lane.taken)
    return Status(StatusCode::Again,
                  "no device memory is left for counters; set arenaBytes higher");
  char *begin = context.memory.onDevice() + lane.taken->offset;
  Status status = context.memory.clear(begin, lane.taken->bytes);
  auto made = status.ok() ? OrderedConnectors::make(
                                context, 1 + name.kernel * kMaxLanes + name.number, geometry(name),
                                firstCall, lane.unfinished,
                                had ? had->connectors : std::optional<OrderedConnectors::Pieces>())
                          : StatusOr<std::unique_ptr<OrderedConnectors>>(status);
  if (!made.ok())
    return made.status();
  // Counters may be read meanwhile.
  std::lock_guard lock(mutex);
  lane.counts = reinterpret_cast<resident::BlockCounts *>(begin);
  lane.connectors = std::move(*made);
  return &lane;
}

StatusOr<std::optional<uint32_t>> DeviceLanes::numberOf(LaneName name, LaneShape &shape) {
  if (auto known = shape.numbers.find(name.number); known != shape.numbers.end())
    return std::optional(known->second.number);
  // The lane takes memory: old shapes go until there is enough.
  auto lane = laneAt(name);
  while (!lane.ok() && lane.status().code() == StatusCode::Again && forgetOldest())
    lane = laneAt(name);
  if (!lane.ok())
    return lane.status();
  // A call that others of its id, which are large, have led there.
  if (name.isLarge() && !shape.large)
    if (Status status = makeLarge(shape); !status.ok())
      return status;
  const OrderedShape &tables = name.isLarge() ? *shape.large : *shape.shape;
  auto daemon = daemonOf(name.kernel);
  if (!daemon.ok())
    return daemon.status();
  auto number = (*daemon)->add(tenantOf(name.kernel), tables.in(*(*lane)->connectors),
                               {(*lane)->counts, (*lane)->connectors->doneWord(), shape.parts});
  if (number.ok()) {
    if (shape.numbers.empty())
      shape.lastLane = name.number;
    shape.numbers[name.number] = {*number, {}};
    return std::optional(*number);
  }
  if (number.status().code() != StatusCode::Again)
    return number.status();
  if ((*daemon)->wantsNumbers()) // they can be used again some time after
    giveNumbersBack(name.kernel);
  return std::optional<uint32_t>();
}

void DeviceLanes::giveNumbersBack(uint32_t kernel) {
  constexpr size_t kAtOnce = 16;
  auto daemon = daemonOf(kernel);
  if (!daemon.ok())
    return;
  std::vector<LaneShape *> oldest;
  for (const auto &[key, shape] : shapes)
    if (shape->kernel == kernel && !shape->numbers.empty())
      oldest.push_back(shape.get());
  std::ranges::sort(oldest, {}, &LaneShape::lastUse);
  size_t given = 0;
  // Numbers with an open request stay, and the one that a partitioned collective needs.
  for (LaneShape *shape : oldest)
    std::erase_if(shape->numbers, [&](const auto &entry) {
      const auto &[number, last] = entry.second;
      if (given >= kAtOnce || (shape->parts && entry.first == shape->lastLane) ||
          (last && !(*daemon)->isComplete(*last)))
        return false;
      ++given;
      (*daemon)->remove(number);
      return true;
    });
}

Status DeviceLanes::readCounts(LaneName name, std::vector<resident::BlockCounts> &counts) const {
  const resident::BlockCounts *from = nullptr;
  // The copy below needs no lock: the words stay where they are.
  {
    std::lock_guard lock(mutex);
    from = lanes[name.kernel][name.number].counts;
  }
  if (!from)
    return {};
  std::vector<resident::BlockCounts> read(resident::kMaxTasks);
  Status status = context.memory.download(read.data(), reinterpret_cast<const char *>(from),
                                          read.size() * sizeof(resident::BlockCounts));
  for (uint32_t b = 0; status.ok() && b < counts.size() && b < read.size(); ++b)
    counts[b] = read[b];
  return status;
}

} // namespace occl::cuda
