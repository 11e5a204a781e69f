// The tables of accumulators and reducers, by element type and operator. A part of passes.inl.

/// Floats of 16 bits, which are structs, have one function for all lane masks, to compile sooner.
template <class T>
constexpr int mask_instance(int mask) {
  return __is_class(T) ? kAny : instance_for(mask);
}

/// Floats of 16 bits have one function for all numbers of members if a line is several registers,
/// because arithmetic then takes most of their time.
template <class T>
constexpr int members_instance(uint32_t members) {
  return __is_class(T) && Line::kParts > 1 ? kAny : instance_for(static_cast<int>(members));
}

/// Returns accumulate_unprefetched, or null.
template <class T, int Op, bool Bytewise, int Members>
constexpr auto unprefetched_entry() {
  if constexpr (Isa::kHasUnprefetchedVisits && !__is_class(T))
    return accumulate_unprefetched<T, Op, !Bytewise, Members>;
  else
    return nullptr;
}

/// Make the entries of the tables for an element type and operator.
template <class T, int Op, bool Bytewise>
constexpr Accumulator entry_of(const Accumulator *) {
  constexpr auto kMembers = Accumulator::kMembers;
#define PIDCOMM_EACH_MEMBERS(transposes)                               \
  accumulate<T, Op, transposes, members_instance<T>(kMembers[0])>,     \
      accumulate<T, Op, transposes, members_instance<T>(kMembers[1])>, \
      accumulate<T, Op, transposes, members_instance<T>(kMembers[2])>, \
      accumulate<T, Op, transposes, members_instance<T>(kMembers[3])>, \
      accumulate<T, Op, transposes, kAny>
#define PIDCOMM_UNPREFETCHED(k) unprefetched_entry<T, Op, Bytewise, instance_for(kMembers[k])>()
#define PIDCOMM_EACH_UNPREFETCHED                                              \
  {                                                                            \
    PIDCOMM_UNPREFETCHED(0), PIDCOMM_UNPREFETCHED(1), PIDCOMM_UNPREFETCHED(2), \
        PIDCOMM_UNPREFETCHED(3)                                                \
  }
  if constexpr (Bytewise)
    return {{{PIDCOMM_EACH_MEMBERS(false)}, {PIDCOMM_EACH_MEMBERS(true)}},
            {PIDCOMM_EACH_UNPREFETCHED},
            accumulate_rows<T, Op>};
  return {
      {{}, {PIDCOMM_EACH_MEMBERS(true)}}, {{}, PIDCOMM_EACH_UNPREFETCHED}, accumulate_rows<T, Op>};
#undef PIDCOMM_EACH_UNPREFETCHED
#undef PIDCOMM_UNPREFETCHED
#undef PIDCOMM_EACH_MEMBERS
}
template <class T, int Op, bool Bytewise>
constexpr Reducer entry_of(const Reducer *) {
#define PIDCOMM_FOR_MASK(function, mask) function<T, Op, Bytewise, mask_instance<T>(mask)>
#define PIDCOMM_EACH_MASK(function)                                                              \
  {                                                                                              \
    PIDCOMM_FOR_MASK(function, 0), PIDCOMM_FOR_MASK(function, 1), PIDCOMM_FOR_MASK(function, 2), \
        PIDCOMM_FOR_MASK(function, 3), PIDCOMM_FOR_MASK(function, 4),                            \
        PIDCOMM_FOR_MASK(function, 5), PIDCOMM_FOR_MASK(function, 6),                            \
        PIDCOMM_FOR_MASK(function, 7)                                                            \
  }
  return {PIDCOMM_EACH_MASK(reduce_tiles_over), combine<T, Op>};
#undef PIDCOMM_EACH_MASK
#undef PIDCOMM_FOR_MASK
}

/// Returns an entry of Kernels::accumulators or Kernels::reducers. If the operator is not defined
/// for the type, the functions are null.
template <class Entry, int Op, OpKind Kind, class T, bool IsFloating>
constexpr Entry entry_for() {
  constexpr bool kIsByte = sizeof(T) == 1;
  constexpr const Entry *kEntry = nullptr;
  if constexpr (Kind == OpKind::arith)
    return entry_of<typename Unsigned<T>::Type, Op, kIsByte>(kEntry);
  else if constexpr (Kind == OpKind::order)
    return entry_of<T, Op, kIsByte>(kEntry);
  else if constexpr (IsFloating)
    return {};
  else
    return entry_of<uint64_t, Op, true>(kEntry);
}

template <class Entry, class T, bool IsFloating>
constexpr Entry kRowOfOps[] = {
#define PIDCOMM_ROW(ENUM, code, name, kind) entry_for<Entry, code, OpKind::kind, T, IsFloating>(),
    PIDCOMM_OPS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
};
