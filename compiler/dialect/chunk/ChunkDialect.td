#ifndef OCCL_COMPILER_DIALECT_CHUNK_DIALECT_TD
#define OCCL_COMPILER_DIALECT_CHUNK_DIALECT_TD

include "mlir/IR/OpBase.td"

def Chunk_Dialect : Dialect {
  let name = "chunk";
  let cppNamespace = "::occl::chunk";
  let summary = "what moves: chunks, between the ranks of a collective";
  let description = [{
    A program is one flat list of reads, copies and reductions. It means their execution one after another; the
    compiler may run them in any order that nobody can tell apart. A value is the content of a range of chunks of one
    rank's buffer, as of the operation that defines it; a use after the range was overwritten is an error in the program.
  }];
}

#endif
