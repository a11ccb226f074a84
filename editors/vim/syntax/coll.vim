" Syntax of .coll files: collectives for OCCL.
if exists("b:current_syntax")
  finish
endif

syntax keyword collDeclaration algorithm collective function topology import implements modes inplace part post pre
syntax keyword collControl assert at else for if in return when where while
syntax keyword collStorage let scratch var
syntax keyword collSchedule aggregate channel instances parallelize protocol threadblock
syntax keyword collBuffer input output
syntax keyword collConstant true false out_of_place in_place simple ll ll128
syntax keyword collType int bool chunk location list
syntax keyword collFunction reduce copy into min max log2 pow
syntax match collNumber /\<[0-9]\+\(KiB\|MiB\|GiB\)\?\>/
syntax region collString start=/"/ end=/"/ oneline
syntax match collComment /\/\/.*$/
syntax region collComment start=/\/\*/ end=/\*\//

highlight default link collDeclaration Keyword
highlight default link collControl Statement
highlight default link collStorage StorageClass
highlight default link collSchedule PreProc
highlight default link collBuffer Identifier
highlight default link collConstant Constant
highlight default link collType Type
highlight default link collFunction Function
highlight default link collNumber Number
highlight default link collString String
highlight default link collComment Comment

let b:current_syntax = "coll"
