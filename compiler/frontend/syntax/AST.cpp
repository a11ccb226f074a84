#include "compiler/frontend/syntax/AST.h"

namespace occl::frontend {

const char *nameOf(Type type) {
  // As types are written in programs, and for those that cannot be written, as messages call them.
  switch (type) {
  case Type::Error:
    return "<error>";
  case Type::Void:
    return "nothing";
  case Type::Int:
    return "int";
  case Type::Bool:
    return "bool";
  case Type::Chunk:
    return "chunk";
  case Type::Location:
    return "location";
  case Type::IntList:
    return "[int]";
  case Type::IntMatrix:
    return "[[int]]";
  case Type::ChunkList:
    return "[chunk]";
  case Type::Origin:
    return "origin";
  case Type::Row:
    return "buffer of one rank";
  case Type::Buffer:
    return "buffer";
  }
  return "";
}

Type elementOf(Type list) {
  switch (list) {
  case Type::IntList:
    return Type::Int;
  case Type::IntMatrix:
    return Type::IntList;
  case Type::ChunkList:
    return Type::Chunk;
  default:
    return Type::Error;
  }
}

Type listOf(Type element) {
  switch (element) {
  case Type::Int:
    return Type::IntList;
  case Type::IntList:
    return Type::IntMatrix;
  case Type::Chunk:
  case Type::Location:
    return Type::ChunkList;
  default:
    return Type::Error;
  }
}

} // namespace occl::frontend
