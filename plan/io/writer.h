// Writes plans as JSON (an instruction a line, for people) or CBOR (RFC 8949, the same schema, for
// size and speed), as a stream: memory does not grow with the plan. The same plan gives the same
// bytes. Control characters in names, and what is not UTF-8, become '?'. docs/plan.md describes the
// schema.
#pragma once

#include "plan/model/plan.h"
#include "support/status.h"

#include <iosfwd>
#include <string>

namespace occl::plan {

enum class Format : uint8_t { Json, Cbor };

/// Writes `plan` to `out`, which should be in binary mode. The plan's indices must be in range
/// (verifyPlan, or PlanBuilder). An error if the stream fails.
support::Status writePlan(const Plan &plan, Format format, std::ostream &out);

/// A plan file in the making. Readers never see half a plan, nor one that turned out to be wrong:
/// it is written beside its place, and put there when it is known to be right. Devices, pipes and
/// links stay what they are, and files keep their modes; they get the plan then. As CBOR if `path`
/// ends in ".cbor", else as JSON.
class StagedPlanFile {
public:
  explicit StagedPlanFile(std::string path);
  /// Removes what was not put in its place.
  ~StagedPlanFile();
  StagedPlanFile(const StagedPlanFile &) = delete;
  StagedPlanFile &operator=(const StagedPlanFile &) = delete;

  /// Writes it, so far as that can be taken back. Errors are kept for publish().
  void write(const Plan &plan);
  /// Puts what was written, of the same plan, in its place, which may have a file already.
  support::Status publish(const Plan &plan);

private:
  support::Status writeDraft(const Plan &plan);
  support::Status cannotWrite() const;

  std::string path;
  std::string place, draft; // of the file that path leads to
  bool isSpecial = false;   // a device or pipe
  bool isWritten = false;   // the draft, in part at least
  support::Status result;
};

/// Writes a file, replacing it; as CBOR if `path` ends in ".cbor", else as JSON. After an error the
/// file is removed.
support::Status writePlanFile(const Plan &plan, const std::string &path);

/// The bytes of `plan`.
std::string encodePlan(const Plan &plan, Format format);

} // namespace occl::plan
