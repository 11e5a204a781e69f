#include "plan/options.h"

#include "plan/request.h"

namespace pidcomm {

namespace {

// "; use one of tile (1) conventional (2)" and the remaining techniques.
#define PIDCOMM_ROW(ENUM, code, name, ...) " " name " (" #code ")"
constexpr const char *kTechniqueChoices =
    "; use auto (-1) or one of" PIDCOMM_TECHNIQUES(PIDCOMM_ROW);
constexpr const char *kIsaChoices = "; use one of" PIDCOMM_ISAS(PIDCOMM_ROW);
constexpr const char *kCoherenceChoices = "; use one of" PIDCOMM_COHERENCES(PIDCOMM_ROW);
#undef PIDCOMM_ROW

}  // namespace

Options resolve(const pidcomm_options *options, const OptionRules &rules) {
  const pidcomm_options given = options == nullptr ? pidcomm_options{} : *options;
  Options resolved{given.technique, given.isa, given.threads, given.coherence,
                   given.scratch_offset};
  if (resolved.technique == PIDCOMM_TECHNIQUE_DEFAULT) {
    resolved.technique = PIDCOMM_TECHNIQUE_AUTO;
    resolved.scratch_offset = 0;  // so that the default never replaces the loaded program
  }
  if (resolved.technique != PIDCOMM_TECHNIQUE_AUTO &&
      name_of_technique(resolved.technique) == nullptr)
    fail(PIDCOMM_ERR_OPTION, "technique code ", resolved.technique, " is unknown",
         kTechniqueChoices);
  if (resolved.coherence == PIDCOMM_COHERENCE_DEFAULT)
    resolved.coherence = rules.is_coherent() ? PIDCOMM_COHERENCE_NONE : PIDCOMM_COHERENCE_HARDWARE;
  if (name_of_coherence(resolved.coherence) == nullptr)
    fail(PIDCOMM_ERR_OPTION, "coherence code ", resolved.coherence, " is unknown",
         kCoherenceChoices);
  if (resolved.coherence == PIDCOMM_COHERENCE_NONE && !rules.is_coherent())
    fail(PIDCOMM_ERR_OPTION,
         "coherence none is for emulated DIMMs; on this machine the host's caches do not see the "
         "writes of PEs");
  if (resolved.isa == PIDCOMM_ISA_DEFAULT) resolved.isa = rules.default_isa();
  if (name_of_isa(resolved.isa) == nullptr)
    fail(PIDCOMM_ERR_OPTION, "ISA code ", resolved.isa, " is unknown", kIsaChoices);
  rules.check_isa(resolved.isa);
  if (resolved.threads < 0 || resolved.threads > kMaxThreads)
    fail(PIDCOMM_ERR_OPTION, "threads (", resolved.threads, ") must be 1 to ", kMaxThreads,
         ", or 0 for the default");
  if (resolved.threads == 0) resolved.threads = rules.default_threads();
  return resolved;
}

}  // namespace pidcomm
