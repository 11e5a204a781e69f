#include "exec/lines.h"

#include <algorithm>

namespace pidcomm {

std::vector<BankPair> bank_pairs_of(std::vector<std::byte *> eg_base) {
  std::sort(eg_base.begin(), eg_base.end());
  std::vector<BankPair> bank_pairs;
  for (std::byte *base : eg_base) {
    const bool completes_pair =
        !bank_pairs.empty() && bank_pairs.back().banks == 1 &&
        base - bank_pairs.back().base == static_cast<std::ptrdiff_t>(kLineBytes);
    if (completes_pair)
      bank_pairs.back().banks = 2;
    else
      bank_pairs.push_back({base, 1});
  }
  return bank_pairs;
}

}  // namespace pidcomm
