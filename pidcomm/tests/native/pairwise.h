// Generates small test tables in which every pair of levels of every two factors occurs.
// Deterministic.
#pragma once

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace pairwise {

/// Can level i of factor f and level j of factor g occur together? f < g.
using IsPossible = std::function<bool(std::size_t f, std::size_t i, std::size_t g, std::size_t j)>;

/// Returns rows of one level per factor; levels[f] is the number of levels of factor f. Greedy:
/// each row starts with the first missing pair. Every other factor then takes the possible level
/// that adds most missing pairs. Requires: for any possible choice, every other factor has a
/// possible level; otherwise throws std::invalid_argument.
inline std::vector<std::vector<std::size_t>> table(const std::vector<std::size_t> &levels,
                                                   const IsPossible &is_possible) {
  const std::size_t factors = levels.size();
  // is_covered[a][b][i * levels[b] + j]: level i of factor a and level j of factor b occur together
  // in a row, a < b
  std::vector<std::vector<std::vector<bool>>> is_covered(factors,
                                                         std::vector<std::vector<bool>>(factors));
  for (std::size_t a = 0; a < factors; ++a)
    for (std::size_t b = a + 1; b < factors; ++b)
      for (std::size_t pair = 0; pair < levels[a] * levels[b]; ++pair)
        is_covered[a][b].push_back(!is_possible(a, pair / levels[b], b, pair % levels[b]));
  const auto pair = [&](std::size_t f, std::size_t i, std::size_t g, std::size_t j) {
    return f < g ? is_covered[f][g][i * levels[g] + j] : is_covered[g][f][j * levels[f] + i];
  };

  std::vector<std::vector<std::size_t>> rows;
  for (std::size_t a = 0; a < factors; ++a)
    for (std::size_t b = a + 1; b < factors; ++b)
      for (std::size_t missing = 0; missing < levels[a] * levels[b]; ++missing) {
        if (is_covered[a][b][missing]) continue;
        std::vector<std::size_t> row(factors), chosen = {a, b};
        row[a] = missing / levels[b];
        row[b] = missing % levels[b];
        for (std::size_t f = 0; f < factors; ++f) {
          if (f == a || f == b) continue;
          std::size_t best_score = 0;  // 0 until a level is possible
          for (std::size_t turn = 0; turn < levels[f]; ++turn) {
            const std::size_t level =
                (rows.size() + turn) % levels[f];  // spreads levels that add no pair
            std::size_t score = 1;
            for (std::size_t g : chosen) {
              if (!(f < g ? is_possible(f, level, g, row[g]) : is_possible(g, row[g], f, level))) {
                score = 0;
                break;
              }
              score += !pair(f, level, g, row[g]);
            }
            if (score > best_score) {
              best_score = score;
              row[f] = level;
            }
          }
          if (best_score == 0)
            throw std::invalid_argument("no level of factor " + std::to_string(f) + " is possible");
          chosen.push_back(f);
        }
        for (std::size_t f = 0; f < factors; ++f)
          for (std::size_t g = f + 1; g < factors; ++g) pair(f, row[f], g, row[g]) = true;
        rows.push_back(row);
      }
  return rows;
}

}  // namespace pairwise
