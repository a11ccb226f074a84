#include "compiler/frontend/AST.h"

namespace occl::frontend {

const char *nameOf(Type type) {
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
  case Type::Row:
    return "buffer of one rank";
  case Type::Buffer:
    return "buffer";
  }
  return "";
}

} // namespace occl::frontend
