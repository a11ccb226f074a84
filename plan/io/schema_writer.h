// The schema of a plan file as a sequence of events, in the order in which they are written:
// SchemaWriter(plan, writer).run() calls a writer (JSON or CBOR, plan/io/writer.cpp) for each.
// docs/plan.md describes the schema; plan/io/plan_parser.h reads it.
//
// A writer has beginObject(size, Layout), beginArray(size, Layout), end(), key(name) and
// value(string, bool, uint64_t or int64_t). `size` counts members of an object or elements of an
// array.
#pragma once

#include "plan/model/names.h"
#include "plan/model/plan.h"
#include "support/text_check.h"

namespace occl::plan {

/// Whether the elements stand on a line each or all on one.
enum class Layout : uint8_t { Lines, Inline };

template <typename Format> class SchemaWriter {
public:
  SchemaWriter(const Plan &plan, Format &writer) : plan(plan), out(writer) {}

  void run() {
    out.beginObject(20 + !plan.hasPostcondition + !plan.average + !plan.witnesses.empty(),
                    Layout::Lines);
    emitHeader();
    emitSources();
    list("connections", plan.connections, [&](const Connection &c) { emitConnection(c); });
    uint32_t rank = 0;
    list("ranks", plan.ranks, [&](const RankPlan &r) { emitRank(r, rank++); });
    list("requirements", plan.requirements, [&](const Requirement &r) { emitRequirement(r); });
    if (!plan.witnesses.empty())
      list("witnesses", plan.witnesses, [&](const Witness &w) { emitWitness(w); });
    out.end();
  }

private:
  template <typename T> void field(const char *key, const T &value) {
    out.key(key);
    out.value(value);
  }
  void field(const char *key, uint32_t value) { field(key, uint64_t{value}); }
  void field(const char *key, int32_t value) { field(key, int64_t{value}); }

  /// An array of `items` on a line each.
  template <typename Items, typename Each>
  void list(const char *key, const Items &items, const Each &each) {
    out.key(key);
    out.beginArray(items.size(), Layout::Lines);
    for (const auto &item : items)
      each(item);
    out.end();
  }

  /// An array of numbers on one line.
  void tuple(std::initializer_list<uint32_t> numbers) {
    out.beginArray(numbers.size(), Layout::Inline);
    for (uint32_t number : numbers)
      out.value(uint64_t{number});
    out.end();
  }

  void emitHeader() {
    field("schemaVersion", plan.schemaVersion);
    // Names of files and of other tools' algorithms can be anything; what is read must be plain.
    field("name", std::string_view(support::madePlain(plan.name)));
    field("collective", std::string_view(support::madePlain(plan.collective)));
    out.key("parameters");
    out.beginObject(plan.parameters.size(), Layout::Inline);
    for (const auto &[name, value] : plan.parameters) {
      out.key(support::madePlain(name));
      out.value(value);
    }
    out.end();
    field("sourceHash", std::string_view(plan.sourceHash));
    field("numRanks", plan.numRanks);
    field("partChunks", plan.partChunks);
    field("root", plan.root);
    field("outOfPlace", plan.outOfPlace);
    field("inPlace", plan.inPlace);
    field("uniformChunks", plan.uniformChunks);
    if (!plan.hasPostcondition)
      field("postcondition", false);
    if (!plan.average)
      field("average", false);
    field("protocol", nameOf(plan.protocol));
    field("depth", plan.depth);
    field("minBytes", plan.minBytes);
    field("maxBytes", plan.maxBytes);
  }

  void emitSources() {
    list("files", plan.files,
         [&](const std::string &path) { out.value(std::string_view(support::madePlain(path))); });
    list("locations", plan.locations, [&](const Location &l) {
      tuple({l.file, l.line, l.column});
    });
  }

  void emitConnection(const Connection &connection) {
    out.beginArray(connection.isOrdered || connection.isCounter ? 4 : 3, Layout::Inline);
    out.value(uint64_t{connection.source});
    out.value(uint64_t{connection.channel});
    out.beginArray(connection.numDestinations, Layout::Inline);
    for (uint32_t destination : plan.destinationsOf(connection))
      out.value(uint64_t{destination});
    out.end();
    if (connection.isOrdered || connection.isCounter)
      out.value(connection.isCounter ? kCounter : kOrdered);
    out.end();
  }

  void emitRank(const RankPlan &rank, uint32_t number) {
    out.beginObject(5, Layout::Lines);
    field("inputChunks", rank.inputChunks);
    field("outputChunks", rank.outputChunks);
    field("scratchChunks", rank.scratchChunks);
    field("inPlaceOffset", rank.inPlaceOffset);
    list("threadBlocks", plan.threadBlocksOf(rank), [&](const ThreadBlock &block) {
      out.beginArray(block.numInstructions, Layout::Lines);
      for (const Instruction &instruction : plan.instructionsOf(block))
        emitInstruction(instruction, number);
      out.end();
    });
    out.end();
  }

  /// Members that have their default value are left out.
  // The number of members goes first, as CBOR needs it; so it repeats the conditions below.
  void emitInstruction(const Instruction &i, uint32_t rank) {
    bool hasLocation = i.location != kNoLocation;
    out.beginObject(1 + (i.numSources != 0) + (i.numDestinations != 0) + (i.count != 0) +
                        (i.extent != 0) + (i.value != 0) + i.final + (i.numDependencies != 0) +
                        hasLocation,
                    Layout::Inline);
    field("op", std::string_view(mnemonic(i.opcode)));
    emitOperands("src", plan.sourcesOf(i), rank);
    emitOperands("dst", plan.destinationsOf(i), rank);
    emitUnlessZero("count", i.count);
    emitUnlessZero("extent", i.extent);
    emitUnlessZero("value", i.value);
    if (i.final)
      field("final", true);
    // Dependencies are of the own rank, so that two numbers name one.
    if (i.numDependencies != 0) {
      out.key("after");
      out.beginArray(i.numDependencies, Layout::Inline);
      for (const Dependency &dependency : plan.dependenciesOf(i))
        tuple({dependency.threadBlock, dependency.instruction});
      out.end();
    }
    if (hasLocation)
      field("at", i.location);
    out.end();
  }

  void emitUnlessZero(const char *key, uint32_t value) {
    if (value != 0)
      field(key, value);
  }

  void emitOperands(const char *key, std::span<const Operand> operands, uint32_t rank) {
    // Nothing, rather than an empty list, as for all members with a default value.
    if (operands.empty())
      return;
    out.key(key);
    out.beginArray(operands.size(), Layout::Inline);
    for (const Operand &operand : operands) {
      // An operand's rank is left out where it is the rank's own, which is nearly always;
      // connections have none.
      bool isOwn = operand.rank == (operand.kind == OperandKind::Connection ? 0 : rank);
      out.beginArray(isOwn ? 2 : 3, Layout::Inline);
      out.value(nameOf(operand.kind));
      out.value(uint64_t{operand.index});
      if (!isOwn)
        out.value(uint64_t{operand.rank});
      out.end();
    }
    out.end();
  }

  void emitRequirement(const Requirement &requirement) {
    out.beginArray(4, Layout::Inline);
    out.value(uint64_t{requirement.rank});
    out.value(uint64_t{requirement.outputChunk});
    out.value(uint64_t{requirement.count});
    out.beginArray(requirement.numContributions, Layout::Inline);
    for (const Contribution &contribution : plan.contributionsOf(requirement))
      tuple({contribution.rank, contribution.chunk});
    out.end();
    out.end();
  }

  void emitWitness(const Witness &witness) {
    out.beginArray(witness.numPlaces, Layout::Inline);
    for (const Place &place : plan.placesOf(witness))
      tuple({place.rank, place.threadBlock, place.instruction});
    out.end();
  }

  const Plan &plan;
  Format &out;
};

} // namespace occl::plan
