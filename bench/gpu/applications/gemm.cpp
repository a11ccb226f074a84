// gpu_gemm <ranks> [check]: products of matrices by cuBLAS, M x 4096 times 4096 x 8192, with the
// all-gather of their left matrix, or the reduce-scatter or all-reduce of what they are, each rank
// a process. Every form is compared with the host's float64 before it is timed: of matrices whose
// sums are exact, in bfloat16 and, of the smallest M, float, and of those that are timed. Rows for
// each M: microseconds; overlap: (in turn - ours) / the shorter one of product and collective;
// limits: what the longer one of them alone would be.
#include "bench/gpu/applications/cublas_library.h"
#include "bench/gpu/applications/gemm_forms.h"
#include "bench/gpu/applications/matrices.h"
#include "bench/gpu/applications/rank.h"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

using namespace occl::bench;

namespace {

constexpr uint64_t kColumns = 8192, kInner = 4096, kSmallest = 512, kLargest = 8192;
/// All numbers of bands divide it.
constexpr uint32_t kMostBands = 8;
/// The product may take less in two parts, also in turn.
constexpr uint32_t kParts[] = {1, 2};
using Whose = GemmForms::Whose;

struct Named {
  Application application;
  const char *name;
  std::vector<uint32_t> bands; // that are tried
};
const std::vector<Named> kApplications = {
    {Application::AllGather, "all-gather + product", {1, 2, 4}},
    {Application::ReduceScatter, "product + reduce-scatter", {1, 2, 4, 8}},
    {Application::AllReduce, "product + all-reduce", {1, 2, 4, 8}}};

/// What a form takes, and with which setting; 0: not measured.
struct Best {
  double time = 0;
  std::string setting;
  void take(double other, const std::string &with) {
    if (other == 0 || (time != 0 && time <= other))
      return;
    time = other;
    setting = with;
  }
};

std::string nameOf(const BandsSetting &setting) {
  return std::to_string(setting.bands) + (setting.bands == 1 ? " band" : " bands") +
         (setting.left ? ", leaves " + std::to_string(setting.left) : "") +
         (setting.hostWaits ? ", host waits" : "");
}

/// All forms of one application, of matrices that are loaded.
class Measured {
public:
  Measured(Rank &rank, GemmForms &forms, const Named &application, uint32_t firstSetting,
           bool isTimed)
      : rank(rank), forms(forms), application(application), number(firstSetting), isTimed(isTimed) {
  }

  void run() {
    partitioned();
    rank.endSettings();
    inTurn(Whose::Own, callInStream, callInGraph);
    if (rank.nccl) {
      inTurn(Whose::Theirs, ncclInStream, ncclInGraph);
      ncclInBands();
    }
    if (isTimed)
      alone();
  }

  static void printHead(const Rank &rank) {
    rank.print(
        "\nProducts (M x 4096 x 8192, bfloat16) and collectives of all ranks, us" +
        (rank.nccl ? ", NCCL " + rank.nccl->version() : std::string(", no NCCL")) +
        "\n\n| | M | product alone | collective alone | of NCCL | in turn, occlCall | graph "
        "| in turn, NCCL | graph | NCCL in bands, graph | setting | partitioned, occlPreadyOn | "
        "setting | partitioned, kernels | setting | best other / partitioned | limit | overlap "
        "| of NCCL | limit |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---"
        "|---|---|---|---|\n");
  }

  std::string cells(uint64_t rows) const {
    const auto shown = [this](double time) { return isTimed ? cell(time) : " right |"; };
    const auto ofNccl = [&](double time) { return rank.nccl ? shown(time) : " - |"; };
    const double together = best({callInStream, callInGraph, ncclInStream, ncclInGraph});
    const double moves = best({ownAlone, ncclAlone});
    const double longer = std::max(product, moves), shorter = std::min(product, moves);
    const double other = best({together, ncclBands.time});
    const double ours = best({copied.time, sent.time});
    const auto overlap = [&](double time) {
      return time == 0 ? " - |" : ratio(together - time, shorter);
    };
    return std::string("| ") + application.name + " | " + std::to_string(rows) + " |" +
           cell(product) + cell(ownAlone) + cell(ncclAlone) + shown(callInStream) +
           shown(callInGraph) + ofNccl(ncclInStream) + ofNccl(ncclInGraph) +
           ofNccl(ncclBands.time) + " " + ncclBands.setting + " |" + shown(copied.time) + " " +
           copied.setting + " |" + shown(sent.time) + " " + sent.setting + " |" +
           ratio(other, ours) + ratio(other, longer) + overlap(ours) + overlap(ncclBands.time) +
           overlap(longer) + "\n";
  }

private:
  using Enqueue = GemmForms::Enqueue;

  /// Each form is compared before it is timed.
  double streamTime(Whose whose, const Enqueue &enqueue) {
    forms.compare(application.application, whose, enqueue);
    return isTimed ? rank.inStream(enqueue) : 0;
  }
  double graphTime(Whose whose, const Enqueue &enqueue) {
    enqueue(); // makes what is made once
    cudaStreamSynchronize(rank.stream);
    const Graph one(rank.stream, enqueue);
    for (int replay = 0; replay < 2; ++replay)
      forms.compare(application.application, whose, [&] { one.launch(rank.stream); });
    return isTimed ? rank.inGraph(enqueue) : 0;
  }

  /// All settings, each of requests of its own: by occlPreadyOn, and by kernels of the program.
  void partitioned() {
    for (const uint32_t bands : application.bands) {
      for (const uint32_t left : {0u, 4u, 8u}) {
        const BandsSetting setting = {bands, left, 0, true};
        each(setting, [&](const std::string &name) { copied.take(inStream(setting), name); });
      }
      for (const uint32_t senders : {8u, 16u}) {
        const BandsSetting setting = {bands, senders, senders, false};
        each(setting, [&](const std::string &name) {
          sent.take(inStream(setting), name);
          sent.take(inGraph(setting), name + ", graph");
        });
      }
    }
  }
  double inStream(const BandsSetting &setting) {
    return streamTime(Whose::Own, forms.partitioned(application.application, setting));
  }
  double inGraph(const BandsSetting &setting) {
    return graphTime(Whose::Own, forms.partitioned(application.application, setting));
  }
  /// The next setting, unless it has failed before.
  template <class One> void each(const BandsSetting &setting, const One &one) {
    const std::string name = nameOf(setting);
    if (rank.begin(number++))
      named(std::string(application.name) + ", " + name, [&] { one(name); });
  }

  void inTurn(Whose whose, double &stream, double &graph) {
    for (const uint32_t parts : kParts) {
      const Enqueue both = forms.inTurn(application.application, whose, parts);
      stream = best({stream, streamTime(whose, both)});
      graph = best({graph, graphTime(whose, both)});
    }
  }
  void ncclInBands() {
    for (const uint32_t bands : {2u, 4u, 8u})
      for (const uint32_t left : {0u, 16u}) {
        const BandsSetting setting = {bands, left, 0, false};
        ncclBands.take(
            graphTime(Whose::Theirs, forms.ncclInBands(application.application, setting)),
            nameOf(setting));
      }
  }
  void alone() {
    const auto fastest = [&](const Enqueue &enqueue) {
      return best({rank.inStream(enqueue), rank.inGraph(enqueue)});
    };
    for (const uint32_t parts : kParts)
      product = best({product, fastest(forms.product(application.application, Whose::Own, parts))});
    ownAlone = fastest(forms.collective(application.application, Whose::Own));
    if (rank.nccl)
      ncclAlone = fastest(forms.collective(application.application, Whose::Theirs));
  }

  Rank &rank;
  GemmForms &forms;
  const Named &application;
  uint32_t number;
  const bool isTimed;
  double product = 0, ownAlone = 0, ncclAlone = 0;
  double callInStream = 0, callInGraph = 0, ncclInStream = 0, ncclInGraph = 0;
  Best copied, sent, ncclBands;
};

/// Rows that cannot be divided are an error that says so.
void checkRefusal(GemmForms &forms) {
  for (const Named &each : kApplications) {
    std::string text = "no error";
    try {
      (void)forms.partitioned(each.application, {.bands = 3 * 1024 + 1});
    } catch (const std::runtime_error &error) {
      text = error.what();
    }
    if (text.find("rows are no multiple") == std::string::npos)
      throw std::runtime_error(std::string(each.name) +
                               " of rows that bands do not divide: " + text);
  }
}

void measure(Rank &rank, Cublas &cublas, const Run &run, Type type) {
  const uint64_t unit = uint64_t{rank.size} * kMostBands;
  const Sizes sizes = {run.size / unit * unit, kInner, kColumns};
  GemmForms forms(rank, cublas, sizes, type);
  checkRefusal(forms);
  const auto all = [&](Values values, bool isTimed, bool isPrinted) {
    forms.load(values);
    uint32_t firstSetting = 0;
    for (const Named &each : kApplications) {
      Measured measured(rank, forms, each, firstSetting, isTimed);
      measured.run();
      firstSetting += Rank::Settings::kMost / 3;
      if (isPrinted)
        rank.print(measured.cells(sizes.rows));
    }
  };
  const bool isMain = type == Type::Bfloat16;
  all(Values::Exact, false, isMain && run.onlyChecks);
  if (isMain)
    all(Values::Dense, !run.onlyChecks, !run.onlyChecks);
}

} // namespace

int main(int argc, char **argv) {
  return runRanks(argc, argv, sizesFrom(kSmallest, kLargest, 2), [](Rank &rank, const Run &run) {
    std::unique_ptr<Cublas> cublas = Cublas::open();
    if (!cublas)
      return rank.print(run.isFirst ? "\nno libcublas.so.13 or .12: no products\n" : "");
    if (run.isFirst)
      Measured::printHead(rank);
    // Ranks that share a device wait for its slices of time.
    if (rank.ranksOfDevice > 1 && run.size != kSmallest)
      return;
    if (run.size == kSmallest)
      measure(rank, *cublas, run, Type::Float32);
    measure(rank, *cublas, run, Type::Bfloat16);
  });
}
