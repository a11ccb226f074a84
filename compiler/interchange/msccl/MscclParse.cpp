#include "compiler/interchange/msccl/MscclParse.h"

#include "plan/model/limits.h"
#include "support/suggestion.h"

#include <algorithm>
#include <charconv>

namespace occl::interchange::msccl {

using frontend::DiagnosticCode;

namespace {

namespace limits = plan::limits;

/// The attributes of one element. Reports what is missing or wrong, and gives a value in range all
/// the same.
class Attributes {
public:
  Attributes(Reporter &reporter, std::string_view element, std::span<const XmlAttribute> attributes,
             uint32_t offset)
      : offset(offset), reporter(reporter), element(element), attributes(attributes) {}

  const std::string_view *find(std::string_view name) const {
    for (const XmlAttribute &attribute : attributes)
      if (attribute.name == name)
        return &attribute.value;
    return nullptr;
  }

  /// The integer `name`, in [low, high]; `fallback`, or an error without one, if it is not there.
  int64_t integer(std::string_view name, int64_t low, int64_t high,
                  std::optional<int64_t> fallback = {}) {
    // A missing attribute has its usual value, or is an error.
    const std::string_view *text = find(name);
    if (!text) {
      if (!fallback)
        reporter.error(DiagnosticCode::ImportMissingAttribute, offset,
                       "<" + std::string(element) + "> has no attribute '" + std::string(name) +
                           "'");
      return fallback.value_or(low);
    }
    int64_t value = 0;
    // The whole text has to be a number, within the range.
    auto [end, status] = std::from_chars(text->data(), text->data() + text->size(), value);
    bool isNumber = status == std::errc() && end == text->data() + text->size();
    if (isNumber && value >= low && value <= high)
      return value;
    reject(name, *text,
           isNumber || status == std::errc::result_out_of_range
               ? "it must be from " + std::to_string(low) + " to " + std::to_string(high)
               : "it must be an integer");
    return low;
  }

  bool flag(std::string_view name, bool fallback) { return integer(name, 0, 1, fallback) != 0; }

  /// `allowed` are the values that could have been meant.
  void reject(std::string_view name, std::string_view value, const std::string &reason,
              const std::vector<std::string_view> &allowed = {}) {
    frontend::Diagnostic &error = reporter.error(DiagnosticCode::ImportBadValue, offset, name,
                                                 "'" + std::string(value) + "' is no value of '" +
                                                     std::string(name) + "': " + reason);
    std::string meant = support::suggest(value, allowed);
    if (!meant.empty())
      error.fixIt(error.range, std::string(name) + "=\"" + meant + "\"");
  }

  /// Warns of attributes that nobody knows; those in `known` are read, or mean nothing here.
  void expectOnly(std::initializer_list<std::string_view> known) {
    for (const XmlAttribute &attribute : attributes)
      if (std::find(known.begin(), known.end(), attribute.name) == known.end())
        reporter.warn(
            DiagnosticCode::ImportUnknown, offset, attribute.name,
            "the attribute '" + std::string(attribute.name) + "' of <" + std::string(element) +
                "> is not known and means nothing here" +
                support::didYouMean(support::suggest(attribute.name, std::vector(known))));
  }

  const uint32_t offset;

private:
  Reporter &reporter;
  std::string_view element;
  std::span<const XmlAttribute> attributes;
};

class Parser : public XmlHandler {
public:
  explicit Parser(Reporter &reporter) : reporter(reporter) {}

  void open(std::string_view name, std::span<const XmlAttribute> list, uint32_t offset) override {
    // Elements within one that was skipped are skipped.
    Attributes attributes(reporter, name, list, offset);
    if (skipped > 0 || !enter(name, attributes))
      ++skipped;
    else
      path.push_back(name == "algo"  ? Level::Algorithm
                     : name == "gpu" ? Level::Gpu
                     : name == "tb"  ? Level::ThreadBlock
                                     : Level::Leaf);
  }

  void close() override {
    if (skipped > 0)
      --skipped;
    else
      path.pop_back();
  }

  bool isComplete() const { return hasAlgorithm; }
  Algorithm take() { return std::move(algorithm); }

private:
  enum class Level : uint8_t { File, Algorithm, Gpu, ThreadBlock, Leaf };

  /// Reads an element; false if it is to be skipped with all that it contains.
  bool enter(std::string_view name, Attributes &attributes) {
    // Each element has one parent in which it may stand, and a function that reads it.
    struct Kind {
      std::string_view name;
      Level parent;
      void (Parser::*read)(Attributes &);
    };
    static constexpr Kind kKinds[] = {{"algo", Level::File, &Parser::readAlgorithm},
                                      {"gpu", Level::Algorithm, &Parser::readGpu},
                                      {"copy", Level::Gpu, &Parser::readCopy},
                                      {"tb", Level::Gpu, &Parser::readThreadBlock},
                                      {"step", Level::ThreadBlock, &Parser::readStep}};
    Level here = path.empty() ? Level::File : path.back();
    for (const Kind &kind : kKinds) {
      if (kind.name != name)
        continue;
      if (kind.parent != here)
        return reject(name, here, attributes.offset);
      (this->*kind.read)(attributes);
      return true;
    }
    // The outermost element must be the algorithm; others may be of later versions of the format,
    // and are skipped with a warning.
    if (here == Level::File)
      return reject(name, here, attributes.offset);
    reporter.warn(DiagnosticCode::ImportUnknown, attributes.offset, "",
                  "the element <" + std::string(name) + "> is not known and is skipped");
    return false;
  }

  bool reject(std::string_view name, Level here, uint32_t offset) {
    static constexpr const char *kNames[] = {"at the top of the file; <algo> is expected",
                                             "in <algo>", "in <gpu>", "in <tb>",
                                             "in an element that has no content"};
    reporter.error(DiagnosticCode::ImportWrongElement, offset,
                   "<" + std::string(name) + "> does not belong " +
                       kNames[static_cast<size_t>(here)]);
    return false;
  }

  void readAlgorithm(Attributes &attributes) {
    // Texts are cut to a plan's limit and not refused: names mean nothing.
    hasAlgorithm = true;
    algorithm.offset = attributes.offset;
    if (const std::string_view *name = attributes.find("name"))
      algorithm.name = name->substr(0, limits::kMaxNameLength);
    if (const std::string_view *collective = attributes.find("coll"))
      algorithm.collective = collective->substr(0, limits::kMaxNameLength);
    algorithm.numGpus = static_cast<uint32_t>(attributes.integer("ngpus", 1, limits::kMaxRanks));
    algorithm.chunksPerLoop =
        static_cast<uint32_t>(attributes.integer("nchunksperloop", 1, limits::kMaxChunks, 0));
    // Checked and not used: channels are those of the thread blocks.
    attributes.integer("nchannels", 0, limits::kMaxChannels, 0);
    algorithm.inPlace = attributes.flag("inplace", false);
    if (attributes.find("outofplace"))
      algorithm.outOfPlace = attributes.flag("outofplace", false);
    readProtocol(attributes);
    readBytes(attributes);
    // What is not read here, and is known to mean nothing.
    attributes.expectOnly({"name", "coll", "ngpus", "nchunksperloop", "nchannels", "inplace",
                           "outofplace", "proto", "minBytes", "maxBytes", "nthreads", "redop"});
  }

  void readProtocol(Attributes &attributes) {
    // Simple if nothing is said.
    const std::string_view *name = attributes.find("proto");
    if (!name || *name == "Simple")
      algorithm.protocol = plan::Protocol::Simple;
    else if (*name == "LL")
      algorithm.protocol = plan::Protocol::LL;
    else if (*name == "LL128")
      algorithm.protocol = plan::Protocol::LL128;
    else
      attributes.reject("proto", *name, "it must be Simple, LL or LL128",
                        {"Simple", "LL", "LL128"});
  }

  void readBytes(Attributes &attributes) {
    for (auto [name, value] :
         {std::pair("minBytes", &algorithm.minBytes), std::pair("maxBytes", &algorithm.maxBytes)})
      if (attributes.find(name))
        // Unsigned in a plan; the file has no larger number than 2^63 - 1.
        *value = static_cast<uint64_t>(attributes.integer(name, 0, INT64_MAX));
    // Generators write 0 and 0 for people to edit.
    if (algorithm.maxBytes == 0) {
      reporter.warn(DiagnosticCode::ImportNoSizes, attributes.offset, "maxBytes",
                    "maxBytes is 0: the sizes are taken as not given, and the plan is for all");
      algorithm.minBytes = algorithm.maxBytes = std::nullopt;
    }
    if (algorithm.minBytes > algorithm.maxBytes && algorithm.maxBytes)
      attributes.reject("minBytes", *attributes.find("minBytes"), "it is more than maxBytes");
  }

  void readGpu(Attributes &attributes) {
    Gpu &gpu = algorithm.gpus.emplace_back();
    gpu.offset = attributes.offset;
    gpu.id = static_cast<int32_t>(attributes.integer("id", 0, limits::kMaxRanks - 1));
    // Sizes may be left out for buffers that are not used.
    for (auto [name, size] :
         {std::pair("i_chunks", &gpu.inputChunks), std::pair("o_chunks", &gpu.outputChunks),
          std::pair("s_chunks", &gpu.scratchChunks)})
      *size = static_cast<uint32_t>(attributes.integer(name, 0, limits::kMaxChunks, 0));
    attributes.expectOnly({"id", "i_chunks", "o_chunks", "s_chunks"});
  }

  void readCopy(Attributes &attributes) {
    InitialCopy &copy = algorithm.gpus.back().copies.emplace_back();
    copy.offset = attributes.offset;
    for (auto [name, chunk] :
         {std::pair("i_off", &copy.inputChunk), std::pair("o_off", &copy.outputChunk)})
      *chunk = static_cast<uint32_t>(attributes.integer(name, 0, limits::kMaxChunks - 1));
    copy.count = static_cast<uint32_t>(attributes.integer("cnt", 1, limits::kMaxChunks, 1));
    attributes.expectOnly({"i_off", "o_off", "cnt"});
  }

  void readThreadBlock(Attributes &attributes) {
    ThreadBlock &block = algorithm.gpus.back().threadBlocks.emplace_back();
    block.offset = attributes.offset;
    block.id = static_cast<int32_t>(attributes.integer("id", 0, limits::kMaxThreadBlocks - 1));
    block.sendPeer = static_cast<int32_t>(attributes.integer("send", -1, INT32_MAX, -1));
    block.recvPeer = static_cast<int32_t>(attributes.integer("recv", -1, INT32_MAX, -1));
    // A thread block without peers has no connection; some generators say so by channel -1.
    bool hasPeer = block.sendPeer >= 0 || block.recvPeer >= 0;
    block.channel = static_cast<uint32_t>(std::max<int64_t>(
        attributes.integer("chan", hasPeer ? 0 : -1, limits::kMaxChannels - 1, 0), 0));
    attributes.expectOnly({"id", "send", "recv", "chan", "rtype", "stype"});
  }

  void readStep(Attributes &attributes) {
    // Everything but the number has a usual value; the number, if it is given, must be the
    // position.
    std::vector<Step> &steps = algorithm.gpus.back().threadBlocks.back().steps;
    auto position = static_cast<int64_t>(steps.size());
    Step &step = steps.emplace_back();
    step.offset = attributes.offset;
    readType(attributes, step);
    step.source = readRange(attributes, "srcbuf", "srcoff");
    step.destination = readRange(attributes, "dstbuf", "dstoff");
    step.count = static_cast<uint32_t>(attributes.integer("cnt", 0, limits::kMaxChunks, 1));
    step.dependencyBlock =
        static_cast<int32_t>(attributes.integer("depid", -1, limits::kMaxThreadBlocks, -1));
    // A step that waits for a block has to say for which of its steps.
    step.dependencyStep = static_cast<int32_t>(
        attributes.integer("deps", -1, limits::kMaxInstructions,
                           step.dependencyBlock < 0 ? std::optional<int64_t>(-1) : std::nullopt));
    // Files without hasdep leave it open, which is not the same as "no".
    if (attributes.find("hasdep"))
      step.signals = attributes.flag("hasdep", false);
    attributes.expectOnly(
        {"s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps", "hasdep"});
    int64_t number = attributes.integer("s", 0, INT32_MAX, position);
    if (number != position)
      reporter.error(DiagnosticCode::ImportStepOrder, step.offset, "s",
                     "this is step " + std::to_string(position) +
                         " of its thread block, not step " + std::to_string(number) +
                         ": steps are numbered from 0, in order");
  }

  void readType(Attributes &attributes, Step &step) {
    // Types are the format's short names.
    const std::string_view *name = attributes.find("type");
    if (!name) {
      reporter.error(DiagnosticCode::ImportMissingAttribute, step.offset,
                     "<step> has no attribute 'type'");
      return;
    }
    std::optional<StepType> type = stepTypeOf(*name);
    if (!type)
      attributes.reject("type", *name, "it must be s, r, rcs, rrs, rrc, rrcs, cpy, re or nop",
                        {"s", "r", "rcs", "rrs", "rrc", "rrcs", "cpy", "re", "nop"});
    step.type = type.value_or(StepType::Nop);
  }

  Range readRange(Attributes &attributes, std::string_view buffer, std::string_view index) {
    // The letters are the format's names of buffers; an offset of -1 is "none".
    Range range;
    const std::string_view *name = attributes.find(buffer);
    if (name && *name != "i" && *name != "o" && *name != "s")
      attributes.reject(buffer, *name, "it must be i, o or s");
    else if (name)
      range.buffer = *name == "i"   ? plan::OperandKind::Input
                     : *name == "o" ? plan::OperandKind::Output
                                    : plan::OperandKind::Scratch;
    range.index = static_cast<int32_t>(attributes.integer(index, -1, limits::kMaxChunks - 1, -1));
    return range;
  }

  Reporter &reporter;
  Algorithm algorithm;
  std::vector<Level> path;
  unsigned skipped = 0; // open elements that are skipped
  bool hasAlgorithm = false;
};

} // namespace

std::optional<Algorithm> parseAlgorithm(const frontend::SourceManager &sources,
                                        frontend::FileId file,
                                        frontend::DiagnosticEngine &diagnostics,
                                        std::vector<Warning> &warnings) {
  Reporter reporter(sources, file, diagnostics, warnings);
  Parser parser(reporter);
  if (!readXml(sources, file, parser, diagnostics) || diagnostics.hasErrors())
    return std::nullopt;
  return parser.take();
}

} // namespace occl::interchange::msccl
