/// AllReduce (max) of floats along x of an 8 x 8 hypercube, then along both axes, with the C++
/// interface. Destructors free sets and hypercubes; exceptions name the invalid values and the
/// rule. Loops on the host check the results.
#include <algorithm>
#include <cstdio>
#include <pidcomm/pidcomm.hpp>
#include <vector>

constexpr std::size_t kPes = 64, kMembers = 8, kFloats = 1000;

/// Counts the floats that are not the maximum over their group: `members` consecutive PEs.
static std::size_t count_wrong(const std::vector<float> &input, const std::vector<float> &output,
                               std::size_t members) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < input.size(); ++i) {
    const std::size_t first = i / kFloats / members * members;
    float largest = input[first * kFloats + i % kFloats];
    for (std::size_t pe = first; pe < first + members; ++pe)
      largest = std::max(largest, input[pe * kFloats + i % kFloats]);
    wrong += output[i] != largest;
  }
  return wrong;
}

int main() try {
  std::vector<float> input(kPes * kFloats);
  for (std::size_t i = 0; i < input.size(); ++i)
    input[i] = static_cast<float>(i * 7919 % 10007) - 5000.0f;

  /* [allreduce] */
  pidcomm::DpuSet pes(kPes);
  pidcomm::Hypercube cube(pes.get(), {8, 8});
  const pidcomm::Buffer<float> x(cube, "x", kFloats);
  x.write(cube, input);                     // row = PE
  cube.allreduce("10", x, x, PIDCOMM_MAX);  // in place
  const std::vector<float> along_x = x.read(cube);
  /* [end] */
  const pidcomm_trace trace = cube.allreduce("01", x, x, PIDCOMM_MAX);
  const std::vector<float> along_both = x.read(cube);
  const std::size_t wrong =
      count_wrong(input, along_x, kMembers) + count_wrong(input, along_both, kPes);

  /* [error] */
  bool is_refused = false;
  try {
    cube.alltoall("11", x, x);  // 1000 floats are not 64 blocks
  } catch (const pidcomm::Error &error) {
    is_refused = error.status() == PIDCOMM_ERR_SIZE;
  }
  /* [end] */
  std::printf("allreduce (max) along x and y of 8x8 PEs, technique %s: %zu of %zu floats wrong\n",
              pidcomm_name(PIDCOMM_TABLE_TECHNIQUE, trace.technique), wrong, 2 * input.size());
  return wrong == 0 && is_refused ? 0 : 1;
} catch (const pidcomm::Error &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
