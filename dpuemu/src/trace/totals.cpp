#include "trace/totals.h"

#include <algorithm>
#include <iterator>

#include "base/json.h"

namespace dpuemu {

void SpanUnion::add(uint64_t begin, uint64_t end) {
  begin = std::max(begin, closed_until_);
  if (begin >= end) return;
  auto first = spans_.upper_bound(begin);
  if (first != spans_.begin() && std::prev(first)->second >= begin) begin = (--first)->first;
  auto last = first;
  for (; last != spans_.end() && last->first <= end; ++last) {
    end = std::max(end, last->second);
    length_ -= last->second - last->first;
  }
  spans_.erase(first, last);
  spans_.emplace(begin, end);
  length_ += end - begin;
  if (spans_.size() <= kMostSpans) return;
  closed_until_ = spans_.begin()->second;
  spans_.erase(spans_.begin());
}

std::string Totals::json() const {
  std::string text;
  const auto add = [&](const char *field, double value) {
    text.append(text.empty() ? "{" : ",").append(quoted(field)) += ":" + number(value);
  };
  const auto in_us = [](const SpanUnion &spans) {
    return static_cast<double>(spans.length()) / 1000;
  };
  add("launches", static_cast<double>(launches));
  add("transfers", static_cast<double>(transfers));
  add("dropped_events", static_cast<double>(dropped_events));
  add("host_us", in_us(launched));
  add("moved_us", in_us(moved));
  add("modelled_us", in_us(modelled));
  text += R"(,"pe_us":[)";
  const size_t after_list = text.size();
  for (size_t i = 0; i < pe_ns.size(); ++i)
    if (has_launched[i]) text += (text.size() == after_list ? "" : ",") + number(pe_ns[i] / 1000);
  return text + "]}";
}

}  // namespace dpuemu
