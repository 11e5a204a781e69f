// AllReduce (max) of floats along both axes of an 8 x 8 hypercube, with the C++ interface.
// Build: c++ -std=c++20 allreduce.cpp -lpidcomm -ldpuemu
#include <algorithm>
#include <cstdio>
#include <pidcomm/pidcomm.hpp>
#include <vector>

int main() try {
  constexpr std::size_t kPes = 64, kFloats = 1000;
  pidcomm::DpuSet pes(kPes);
  pidcomm::Hypercube cube(pes.get(), {8, 8});

  std::vector<float> rows(kPes * kFloats), want(kFloats, -1e9f);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i] = static_cast<float>(i * 7919 % 10007) - 5000.0f;
    want[i % kFloats] = std::max(want[i % kFloats], rows[i]);
  }
  cube.write(0, kFloats * sizeof(float), rows.data());
  cube.allreduce("11", kFloats * sizeof(float), 0, 0, PIDCOMM_FLOAT32, PIDCOMM_MAX);  // in place
  cube.read(0, kFloats * sizeof(float), rows.data());

  std::size_t wrong = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) wrong += rows[i] != want[i % kFloats];

  // Bad input is an exception that names the values and the rule.
  bool is_refused = false;
  /* [error] */
  try {
    cube.alltoall("11", 1000, 0, 1 << 20, PIDCOMM_FLOAT32);
  } catch (const pidcomm::Error &error) {
    is_refused = error.status() == PIDCOMM_ERR_SIZE;
  }
  /* [end] */
  std::printf("%d passed, %d failed\n", (wrong == 0) + is_refused, (wrong != 0) + !is_refused);
  return wrong == 0 && is_refused ? 0 : 1;
} catch (const pidcomm::Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
