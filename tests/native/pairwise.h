// A deterministic generator of small test tables in which every pair of levels of every two factors occurs.
#pragma once

#include <cstddef>
#include <vector>

namespace pairwise {

/// Rows of one level per factor; levels[f] is the number of levels of factor f. Greedy: each row takes the first pair that is still
/// missing, then for every other factor the level that adds most missing pairs with the factors already chosen.
inline std::vector<std::vector<std::size_t>> table(const std::vector<std::size_t> &levels) {
  const std::size_t factors = levels.size();
  // is_covered[a][b][i * levels[b] + j]: level i of factor a and level j of factor b occur together in a row, a < b
  std::vector<std::vector<std::vector<bool>>> is_covered(factors, std::vector<std::vector<bool>>(factors));
  for (std::size_t a = 0; a < factors; ++a)
    for (std::size_t b = a + 1; b < factors; ++b) is_covered[a][b].resize(levels[a] * levels[b]);
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
          std::size_t best_gain = 0;
          row[f] = rows.size() % levels[f];  // if nothing is gained, spread
          for (std::size_t level = 0; level < levels[f]; ++level) {
            std::size_t gain = 0;
            for (std::size_t g : chosen) gain += !pair(f, level, g, row[g]);
            if (gain > best_gain) {
              best_gain = gain;
              row[f] = level;
            }
          }
          chosen.push_back(f);
        }
        for (std::size_t f = 0; f < factors; ++f)
          for (std::size_t g = f + 1; g < factors; ++g) pair(f, row[f], g, row[g]) = true;
        rows.push_back(row);
      }
  return rows;
}

}  // namespace pairwise
