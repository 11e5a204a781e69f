#include "exec/default_options.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "base/error.h"
#include "exec/parallel.h"
#include "line_kernels/kernels.h"
#include "rank_access/rank_access.h"

namespace pidcomm {

namespace {

/// Returns the text before the first comma, without blanks around it.
std::string_view first_item(std::string_view list) {
  constexpr std::string_view kBlanks = " \t\n";
  const std::string_view item = list.substr(0, list.find(','));
  const std::size_t begin = std::min(item.find_first_not_of(kBlanks), item.size());
  return item.substr(begin, item.find_last_not_of(kBlanks) + 1 - begin);
}

/// The option rules of the machine that runs the library.
class Host : public OptionRules {
 public:
  int default_isa() const override { return best_isa(); }
  int default_threads() const override { return pidcomm::default_threads().threads; }
  bool is_coherent() const override { return ranks_are_coherent(); }
  void check_isa(int isa) const override {
    if (!isa_available(isa))
      fail(PIDCOMM_ERR_OPTION, "this machine cannot run ISA ", name_of_isa(isa));
  }
};

}  // namespace

DefaultThreads default_threads() {
  const char *text = std::getenv("OMP_NUM_THREADS");
  const std::string_view first = text == nullptr ? std::string_view() : first_item(text);
  int wanted = 0;
  const auto [end, error] = std::from_chars(first.data(), first.data() + first.size(), wanted);
  const bool is_valid = error == std::errc() && end == first.data() + first.size() && wanted > 0;
  const bool is_empty = text == nullptr || *text == '\0';
  return {std::min(is_valid ? wanted : usable_cpus(), kMaxThreads), !is_valid && !is_empty};
}

Options resolve(const pidcomm_options *options) { return resolve(options, Host()); }

}  // namespace pidcomm
