// The passes, written once with the line primitives of an instruction set. Each
// src/line_kernels/isa/*.cpp includes this file inside an anonymous namespace, after it defines a
// type `Line` (a LineOf) and a `struct Isa` with `constexpr bool kHasInstances` (see
// passes/movement.inl), `constexpr bool kHasUnprefetchedVisits` (see kernels.h) and these functions
// (all static, inline):
//   Line load_line(const std::byte *)            one line of the region
//   void store_line(std::byte *, Line)           one complete line of the region, non-temporal
//   void store_words_non_temporal(std::byte *, Line)
//                                                64 aligned bytes of a host row, non-temporal
//   void flush_line(const std::byte *)           removes the line from every cache
//   void prefetch_line(const std::byte *)        loads into the first-level cache
//   void prefetch_far(const std::byte *)         loads into the second-level cache; leaves the L1
//                                                line buffers to stores
//   void fence()                                 completes earlier loads, flushes and
//                                                non-temporal stores
//   Line transpose(Line)                         PIM order <-> host order (the domain transfer)
//   void butterfly<Bit>(Line &a, Line &b)        PIM order: exchanges a's lanes with the bit
//                                                set and b's lanes without it
//   void butterfly_words<Bit>(Line &a, Line &b)  host order: the same for words
//   void pair_words<Bit>(Line &a, Line &b)       host order: word i of the results is the pair of
//                                                the words i and i ^ (1 << Bit), of a if i lacks
//                                                the bit, else of b; a and b have the two words of
//                                                a pair in any order
//   Line swap_lanes<Bit>(Line)                   PIM order: exchanges lanes l and l ^ (1 << Bit)
//   Line swap_words(Line, bit)                   host order: the same for words
//   Line shuffle_lanes(Line, control)            PIM order: lane l of every beat = lane map[l], or
//                                                0 if map[l] is kNoLane; control =
//                                                lane_control(map)
//   Line shuffle_words(Line, control)            host order: the same for words; control =
//                                                word_control(map)
//   Line::Floats widen<High>(Line::Part)         half of the float16 elements as float32; the ISA
//                                                chooses which elements are the high half
//   Line::Part narrow(Line::Floats low, high)    joins both halves again, each element rounded to
//                                                nearest, ties to even
// Byte l of a map is for lane l.

// Keep this order: later files use earlier files.
// clang-format off
#include "line_kernels/passes/movement.inl"
#include "line_kernels/passes/operators.inl"
#include "line_kernels/passes/rows.inl"
#include "line_kernels/passes/accumulators.inl"
#include "line_kernels/passes/lane_tiles.inl"
#include "line_kernels/passes/reductions.inl"
#include "line_kernels/passes/rotated.inl"
#include "line_kernels/passes/member_steps.inl"
#include "line_kernels/passes/host_rows.inl"
#include "line_kernels/passes/sections.inl"
#include "line_kernels/passes/row_passes.inl"
#include "line_kernels/passes/flush_and_copy.inl"
// clang-format on

/// Defines the table of an instruction set, with the reducers of the instruction set REDUCERS.
#define PIDCOMM_KERNELS(ENUM, isa_name, REDUCERS)                                            \
  const Accumulator *const kAccumulators##ENUM[kTypes] = {                                   \
      PIDCOMM_TYPES(PIDCOMM_ACCUMULATOR_ENTRY)};                                             \
  extern const Kernels kKernels##ENUM;                                                       \
  const Kernels kKernels##ENUM = {PIDCOMM_ISA_##ENUM,  isa_name,                             \
                                  Isa::is_supported,   {PIDCOMM_PASSES(PIDCOMM_PASS_ENTRY)}, \
                                  kAccumulators##ENUM, kReducers##REDUCERS,                  \
                                  flush_lines,         prefetch_lines,                       \
                                  Isa::fence,          copy_non_temporal,                    \
                                  copy_lines};
#define PIDCOMM_PASS_ENTRY(name, ...) pass_##name,

/// Defines the reducers of an instruction set.
#define PIDCOMM_REDUCERS(ENUM)                         \
  extern const Reducer *const kReducers##ENUM[kTypes]; \
  const Reducer *const kReducers##ENUM[kTypes] = {PIDCOMM_TYPES(PIDCOMM_REDUCER_ENTRY)};

#define PIDCOMM_ACCUMULATOR_ENTRY(ENUM, code, name, ctype, kind) \
  kRowOfOps<Accumulator, ctype, ElementType::Kind::kind == ElementType::Kind::floating>,
#define PIDCOMM_REDUCER_ENTRY(ENUM, code, name, ctype, kind) \
  kRowOfOps<Reducer, ctype, ElementType::Kind::kind == ElementType::Kind::floating>,
