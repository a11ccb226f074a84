// A program that passes hand on as data, beside an op whose body stays empty meanwhile.
#pragma once

#include "mlir/IR/DialectInterface.h"
#include "mlir/IR/MLIRContext.h"

#include <optional>
#include <utility>

namespace occl::dialect {

/// What a context keeps of `OpT`, an op of `DialectT`, as a `Data` between a store and the next
/// take. A context compiles one program at a time, so it keeps one: whoever stores another has
/// taken the first. Not thread-safe. The dialect is loaded.
template <typename DialectT, typename OpT, typename Data>
class KeptData : public mlir::DialectInterface::Base<KeptData<DialectT, OpT, Data>> {
public:
  explicit KeptData(mlir::Dialect *dialect) : KeptData::Base(dialect) {}

  /// From now on, store keeps.
  static void begin(mlir::MLIRContext &context) {
    KeptData *kept = registered(context);
    if (!kept)
      kept = &context.getLoadedDialect<DialectT>()->template addInterface<KeptData>();
    kept->isActive = true;
  }

  /// From now on, store does not keep. Returns what is kept; its op is null if nothing is.
  static std::pair<OpT, Data> end(mlir::MLIRContext &context) {
    KeptData *kept = of(context);
    if (!kept)
      return {};
    kept->isActive = false;
    return {std::exchange(kept->owner, {}), std::exchange(kept->data, {})};
  }

  /// Keeps `data` as what `op` says, unless the context keeps nothing: then false, and `data` is
  /// left as it was.
  static bool store(Data &&data, OpT op) {
    KeptData *kept = of(*op.getContext());
    if (!kept)
      return false;
    kept->owner = op;
    kept->data = std::move(data);
    return true;
  }

  /// What is kept of `op`, which is without it from now on; nullopt if nothing is.
  static std::optional<Data> take(OpT op) {
    if (!find(op))
      return std::nullopt;
    KeptData *kept = of(*op.getContext());
    kept->owner = {};
    return std::exchange(kept->data, {});
  }

  /// What is kept of `op`, or null; valid until it is taken or another is stored.
  static const Data *find(OpT op) {
    KeptData *kept = of(*op.getContext());
    return kept && kept->owner == op ? &kept->data : nullptr;
  }

private:
  static KeptData *registered(mlir::MLIRContext &context) {
    auto *dialect = context.getLoadedDialect<DialectT>();
    return dialect->template getRegisteredInterface<KeptData>();
  }
  static KeptData *of(mlir::MLIRContext &context) {
    KeptData *kept = registered(context);
    return kept && kept->isActive ? kept : nullptr;
  }

  bool isActive = false;
  OpT owner;
  Data data;
};

} // namespace occl::dialect
