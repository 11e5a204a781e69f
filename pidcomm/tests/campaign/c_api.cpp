// Calls every function of the C API with wrong and right arguments in any order. A call must not
// crash, every error needs a sentence, and a refused call must move no byte. Pointers are valid or
// null, because C cannot check others.
//
// Compiled with CAMPAIGN_FUZZER, libFuzzer chooses the bytes that choose the calls; otherwise they
// are random. A case is up to kMostBytes such bytes.
#include <pidcomm/model.h>

#include <array>

#include "../native/error_cases.h"
#include "campaign.h"

namespace {

using machine::Bytes;
using machine::DpuSet;

constexpr std::size_t kMostBytes = 512, kHostBytes = 64 * 4096;
constexpr std::size_t kSizes[] = {0,
                                  8,
                                  16,
                                  64,
                                  512,
                                  1024,
                                  4096,
                                  1,
                                  7,
                                  12,
                                  63,
                                  (64u << 20) + 8,
                                  std::size_t{1} << 32,
                                  SIZE_MAX / 64 + 1,
                                  SIZE_MAX / 2,
                                  SIZE_MAX - 7,
                                  SIZE_MAX};
constexpr std::size_t kOffsets[] = {
    0,         4096,         1 << 20, 8192, 1, 4, 4104, (64u << 20) - 1024, (64u << 20) - 8,
    64u << 20, SIZE_MAX - 7, SIZE_MAX};
constexpr std::uint32_t kLengths[] = {8, 1, 2,  4,        3,        5,         64,
                                      7, 0, 65, 1u << 16, 1u << 31, UINT32_MAX};
constexpr const char *kMasks[] = {
    "11", "10", "01", "00", "1", "", "111", "12", "1\xff", "11111111111111111", "1 1"};
constexpr int kCodes[] = {0,  1,  2,  3,  4, 5,  6,  7,   16,      17,        20,
                          22, 24, 25, -1, 8, 15, 26, 255, 1 << 30, INT32_MIN, INT32_MAX};

/// The bytes that choose; 0 after their end.
class Choices {
 public:
  Choices(const std::uint8_t *data, std::size_t bytes) : at_(data), end_(data + bytes) {}
  bool is_empty() const { return at_ == end_; }
  std::uint8_t byte() { return is_empty() ? 0 : *at_++; }
  bool one_in(unsigned chances) { return byte() % chances == chances - 1; }
  template <class List>
  auto of(const List &list) {
    return list[byte() % std::size(list)];
  }
  /// The first values of a list are right; the others follow less often.
  template <class List>
  auto mostly(const List &list, std::size_t right) {
    return list[byte() % (one_in(4) ? std::size(list) : right)];
  }
  template <class T>
  T *or_null(T *pointer) {
    return one_in(16) ? nullptr : pointer;
  }

 private:
  const std::uint8_t *at_, *end_;
};

/// A struct with room for fields of later versions.
template <class T>
struct Extended {
  T fields{};
  std::uint64_t later[2] = {};

  T *resized(Choices &choices) {
    if (choices.one_in(12))
      fields.size = choices.of(
          std::array<std::size_t, 5>{0, 8, sizeof(T) - 8, sizeof(T) + 8, sizeof(T) + 16});
    if (choices.one_in(16)) later[choices.byte() % 2] = 1;
    return &fields;
  }
};

/// The sets, hypercubes and non-blocking calls of a case.
class World {
 public:
  explicit World(const DpuSet &set) : set_(set.get()), host_(kHostBytes + 8) {
    cubes_ = {nullptr};
    const std::uint32_t axis_len[] = {8, 8};
    created(pidcomm_hypercube_create(set_, 2, axis_len, &latest_));
    if (dpu_alloc(8, nullptr, &small_set_) != DPU_OK) std::abort();
  }
  ~World() {
    for (pidcomm_pending *&pending : pendings_) pidcomm_wait(&pending, nullptr);
    for (pidcomm_hypercube *cube : cubes_)
      if (pidcomm_hypercube_destroy(cube) != PIDCOMM_OK) std::abort();
    dpu_free(small_set_);
  }
  World(const World &) = delete;
  World &operator=(const World &) = delete;

  /// Makes one call. Returns its status, or PIDCOMM_OK for calls without one.
  int call(Choices &choices);

  Bytes &host() { return host_; }

 private:
  int created(int status) {
    if (status == PIDCOMM_OK && latest_ != nullptr) cubes_.push_back(latest_);
    return status;
  }
  void fill_request(Choices &choices);
  void fill_axes(Choices &choices);
  int call_named(Choices &choices, pidcomm_hypercube *cube);
  int call_about_pes(Choices &choices, const pidcomm_hypercube *cube);
  int call_without_device(Choices &choices);

  struct dpu_set_t set_, small_set_{}, freed_set_{};
  pidcomm_hypercube *latest_ = nullptr;
  std::vector<pidcomm_hypercube *> cubes_;
  std::array<pidcomm_pending *, 3> pendings_{};
  Bytes host_;
  Extended<pidcomm_request> request_;
  Extended<pidcomm_options> options_;
  std::array<std::uint32_t, 17> axis_len_{};
};

void World::fill_request(Choices &choices) {
  static constexpr std::size_t kRightSizes[] = {512, 1024, 64, 4096, 8, 0};
  request_ = {};
  options_ = {};
  pidcomm_request &r = request_.fields;
  r.size = sizeof r;
  r.collective = choices.mostly(kCodes, 8);
  r.mask = choices.or_null(choices.mostly(kMasks, 4));
  r.bytes = choices.one_in(4) ? choices.of(kSizes) : choices.of(kRightSizes);
  r.src = choices.mostly(kOffsets, 2);
  r.dst = choices.mostly(kOffsets, 3);
  r.type = choices.one_in(6) ? choices.of(kCodes) : 16 + choices.byte() % 10;
  r.op = choices.mostly(kCodes, 7);
  r.host = choices.or_null(host_.data() + (choices.one_in(8) ? 1 : 0));
  // An accepted call uses host_bytes bytes: either few, or more than any request that passes the
  // other checks.
  const std::size_t right = r.bytes > 4096 || r.mask == nullptr
                                ? 0
                                : error_cases::Fixture::host_bytes(r.collective, r.bytes) / 2;
  const std::size_t groups = r.mask == nullptr             ? 1
                             : std::string(r.mask) == "11" ? 1
                             : std::string(r.mask) == "00" ? 64
                                                           : 8;
  const bool has_parts = r.collective == PIDCOMM_SCATTER || r.collective == PIDCOMM_GATHER;
  r.host_bytes = right == 0 ? 0 : has_parts ? 64 * r.bytes : groups * r.bytes;
  if (choices.one_in(8))
    r.host_bytes =
        choices.of(std::array<std::size_t, 5>{0, 8, 4096, SIZE_MAX, std::size_t{1} << 50});
  if (r.host_bytes > kHostBytes && r.host_bytes < (std::size_t{1} << 40)) r.host_bytes = kHostBytes;
  pidcomm_options &o = options_.fields;
  o.size = sizeof o;
  if (choices.one_in(3))
    o.technique = choices.of(std::array<int, 11>{-1, 1, 2, 3, 4, 5, 6, 7, 8, -2, INT32_MAX});
  if (choices.one_in(4)) o.isa = choices.of(std::array<int, 8>{1, 2, 3, 4, 5, 6, -1, INT32_MIN});
  if (choices.one_in(4))
    o.threads = choices.of(std::array<int, 7>{1, 2, 3, 1025, -1, INT32_MIN, INT32_MAX});
  if (choices.one_in(8)) o.coherence = choices.of(kCodes);
  if (choices.one_in(3)) o.scratch_offset = choices.one_in(2) ? 2u << 20 : choices.of(kOffsets);
  request_.resized(choices);
  options_.resized(choices);
}

void World::fill_axes(Choices &choices) {
  axis_len_.fill(choices.one_in(8) ? choices.of(kLengths) : 1);
  for (int axis = 0; axis < 3; ++axis)
    axis_len_[static_cast<std::size_t>(axis)] = choices.mostly(kLengths, 4);
}

int World::call_named(Choices &choices, pidcomm_hypercube *cube) {
  fill_request(choices);
  const pidcomm_request &r = request_.fields;
  const char *mask = r.mask;
  void *host = r.host;
  const std::size_t bytes = r.bytes, src = r.src, dst = r.dst, host_bytes = r.host_bytes;
  const int type = r.type, op = r.op;
  static_cast<void>(op);
#define NAMED_ROW(ENUM, code, name, op, before, after, ...) \
  if (r.collective == code) return pidcomm_##name(cube, PIDCOMM_ARGUMENTS_##op##before##after);
  PIDCOMM_COLLECTIVES(NAMED_ROW)
#undef NAMED_ROW
  if (bytes > 4096 && bytes <= machine::kMramBytes) return PIDCOMM_OK;
  return choices.one_in(2) ? pidcomm_write(cube, src, bytes, host)
                           : pidcomm_read(cube, src, bytes, host);
}

int World::call_about_pes(Choices &choices, const pidcomm_hypercube *cube) {
  std::uint32_t a = 0, b = 0, c = 0, coords[16];
  const std::uint32_t pe =
      choices.mostly(std::array<std::uint32_t, 7>{0, 1, 7, 63, 64, 1u << 31, UINT32_MAX}, 4);
  const char *mask = choices.or_null(choices.of(kMasks));
  switch (choices.byte() % 9) {
    case 7: {
      std::array<pidcomm_usable_pe, 64> usable;
      const auto capacity = choices.of(std::array<std::uint32_t, 4>{0, 1, 63, 64});
      return pidcomm_usable_pes(set_, choices.or_null(usable.data()), capacity,
                                choices.or_null(&a));
    }
    case 8: {
      int is_replaced = 0;
      return pidcomm_program_replaced(set_, choices.or_null(&is_replaced));
    }
    case 0:
      return pidcomm_pe_location(cube, pe, choices.or_null(&a), choices.or_null(&b),
                                 choices.or_null(&c));
    case 1:
      return pidcomm_coords(cube, pe, choices.or_null(coords));
    case 2:
      return pidcomm_group_of(cube, mask, pe, choices.or_null(&a));
    case 3:
      return pidcomm_member_of(cube, mask, pe, choices.or_null(&a));
    case 4:
      return pidcomm_groups(cube, mask, choices.or_null(&a), choices.or_null(&b));
    case 5:
      pidcomm_pe_set(cube, pe);
      return PIDCOMM_OK;
    default:
      pidcomm_pes(cube);
      return PIDCOMM_OK;
  }
}

int World::call_without_device(Choices &choices) {
  static char json[1 << 16];
  std::size_t length = 0;
  const char *name = nullptr;
  pidcomm_machine machine = PIDCOMM_MACHINE_INITIALIZER;
  pidcomm_prediction prediction = PIDCOMM_PREDICTION_INITIALIZER;
  fill_request(choices);
  fill_axes(choices);
  const std::uint32_t axes =
      choices.mostly(std::array<std::uint32_t, 6>{2, 1, 3, 0, 17, UINT32_MAX}, 2);
  const std::size_t index = choices.of(std::array<std::size_t, 4>{0, 1, 100, SIZE_MAX});
  switch (choices.byte() % 5) {
    case 0: {
      const std::size_t capacity = choices.of(std::array<std::size_t, 4>{sizeof json, 0, 1, 100});
      return pidcomm_plan_json(axes, choices.or_null(axis_len_.data()),
                               choices.or_null(&request_.fields), choices.or_null(&options_.fields),
                               choices.one_in(4), choices.or_null(json), capacity,
                               choices.or_null(&length));
    }
    case 1:
      return pidcomm_machine_builtin(index, choices.or_null(&name), choices.or_null(&machine));
    case 2:
    case 3:
      if (pidcomm_machine_builtin(index % 2, &name, &machine) != PIDCOMM_OK) return PIDCOMM_OK;
      // Any constant may have any value.
      if (choices.one_in(2)) {
        const double value =
            choices.of(std::array<double, 6>{0, -1, 1e300, 1e-300, 1.0 / 0.0, 0.0 / 0.0});
        const std::size_t doubles = (sizeof machine - sizeof machine.size) / sizeof value;
        std::memcpy(reinterpret_cast<char *>(&machine) + sizeof machine.size +
                        8 * (choices.byte() % doubles),
                    &value, sizeof value);
      }
      if (choices.one_in(8)) machine.size = choices.byte();
      if (choices.one_in(4)) return pidcomm_use_machine(choices.or_null(&machine));
      return pidcomm_predict(axes, choices.or_null(axis_len_.data()),
                             choices.or_null(&request_.fields), choices.or_null(&options_.fields),
                             choices.or_null(&machine), choices.or_null(&prediction));
    default:
      pidcomm_name(static_cast<pidcomm_table>(choices.byte() % 10), choices.of(kCodes));
      pidcomm_isa_available(choices.of(kCodes));
      pidcomm_version();
      return PIDCOMM_OK;
  }
}

int World::call(Choices &choices) {
  pidcomm_hypercube *const cube =
      cubes_[choices.one_in(8) ? choices.byte() % cubes_.size() : cubes_.size() > 1];
  pidcomm_pending *&pending = pendings_[choices.byte() % pendings_.size()];
  pidcomm_trace trace{};
  int is_done = 0;
  switch (choices.byte() % 16) {
    case 0: {
      if (cubes_.size() > 8) return PIDCOMM_OK;
      const struct dpu_set_t set =
          choices.of(std::array<struct dpu_set_t, 5>{set_, set_, small_set_, freed_set_, {}});
      const std::uint32_t axes =
          choices.mostly(std::array<std::uint32_t, 7>{2, 1, 3, 16, 0, 17, UINT32_MAX}, 3);
      fill_axes(choices);
      latest_ = nullptr;
      const std::uint32_t first =
          choices.mostly(std::array<std::uint32_t, 6>{0, 8, 56, 64, 4, UINT32_MAX - 7}, 2);
      return created(pidcomm_hypercube_create_at(
          set, first, axes, choices.or_null(axis_len_.data()), choices.or_null(&latest_)));
    }
    case 1: {
      if (cube == cubes_[0] || cube == cubes_[1]) return pidcomm_hypercube_destroy(nullptr);
      const int status = pidcomm_hypercube_destroy(cube);
      if (status == PIDCOMM_OK) std::erase(cubes_, cube);
      return status;
    }
    case 2:
      return call_about_pes(choices, cube);
    case 3:
      return call_without_device(choices);
    case 4: {
      double seconds;
      std::uint64_t moved;
      fill_request(choices);
      const auto small = [&choices] {
        return choices.mostly(std::array<std::size_t, 6>{0, 64, 512, 4, (64u << 20) + 8, SIZE_MAX},
                              3);
      };
      return pidcomm_stream_limit(cube, choices.of(kCodes), small(), small(), request_.fields.src,
                                  request_.fields.dst, choices.or_null(&options_.fields),
                                  choices.or_null(&seconds), choices.or_null(&moved));
    }
    case 5:
      return pidcomm_wait(choices.or_null(&pending), choices.or_null(&trace));
    case 6:
      return pidcomm_test(choices.or_null(&pending), choices.or_null(&is_done),
                          choices.or_null(&trace));
    case 7:
      if (!choices.one_in(8)) return PIDCOMM_OK;
      freed_set_ = small_set_;
      if (dpu_free(small_set_) == DPU_OK && dpu_alloc(8, nullptr, &small_set_) != DPU_OK)
        std::abort();
      return PIDCOMM_OK;
    case 8:
    case 9:
      return call_named(choices, cube);
    case 10:
      fill_request(choices);
      return pidcomm_validate(cube, choices.or_null(&request_.fields),
                              choices.or_null(&options_.fields));
    case 11:
    case 12:
      if (pending != nullptr) return pidcomm_wait(&pending, nullptr);
      fill_request(choices);
      return pidcomm_irun(cube, choices.or_null(&request_.fields),
                          choices.or_null(&options_.fields), choices.or_null(&pending));
    default:
      fill_request(choices);
      return pidcomm_run(cube, choices.or_null(&request_.fields), choices.or_null(&options_.fields),
                         choices.or_null(&trace));
  }
}

/// The machine and the set of all cases.
const DpuSet &shared_set() {
  static const DpuSet set = (machine::power_up(4), DpuSet::of_ranks(1));
  return set;
}

/// Runs a case; throws harness::Failure.
void run_case(const std::uint8_t *data, std::size_t bytes) {
  static const machine::Hypercube cube(shared_set(), {8, 8});
  World world(shared_set());
  Choices choices(data, bytes);
  machine::Picture windows;
  for (std::size_t offset :
       {std::size_t{0}, error_cases::kSrc, error_cases::kDst, machine::kMramBytes - 1024})
    windows.cover(offset, 1024);
  windows.poison(cube, 77);
  windows.write(cube);
  machine::Picture before = windows.read(cube);
  Bytes host_before = world.host();
  while (!choices.is_empty()) {
    const int status = world.call(choices);
    const std::string sentence = pidcomm_last_error();
    const machine::Picture now = before.read(cube);
    if (status != PIDCOMM_OK) {
      if (pidcomm_name(PIDCOMM_TABLE_STATUS, status) == nullptr)
        machine::fail("unknown status " + std::to_string(status));
      if (status == PIDCOMM_ERR_INTERNAL || sentence.size() < 10)
        machine::fail("status " + error_cases::status_text(status) + ": " + sentence);
      const std::string difference = now.difference(cube, before);
      if (!difference.empty())
        machine::fail("after " + error_cases::status_text(status) + " (" + sentence +
                      "): " + difference);
      if (world.host() != host_before) machine::fail("host memory changed after " + sentence);
    }
    before = now;
    host_before = world.host();
  }
}

}  // namespace

#ifdef CAMPAIGN_FUZZER

extern "C" int LLVMFuzzerRunDriver(int *argc, char ***argv,
                                   int (*run)(const std::uint8_t *data, std::size_t bytes));

int main(int argc, char **argv) {
  static campaign::Run run(argc, argv);
  std::atexit([] { run.finish(); });
  const char *const folder = std::getenv("CAMPAIGN_FOLDER");
  std::string arguments[] = {argv[0],
                             std::string("-max_total_time=") + argv[1],
                             std::string("-seed=") + argv[2],
                             "-max_len=" + std::to_string(kMostBytes),
                             "-timeout=60",
                             "-rss_limit_mb=8000",
                             "-verbosity=0",
                             std::string("-artifact_prefix=") +
                                 (folder != nullptr ? folder : "build/campaign") + "/c_api-"};
  std::vector<char *> pointers;
  for (std::string &argument : arguments) pointers.push_back(argument.data());
  if (run.only_one) pointers = {argv[0], argv[3]};  // CASE is a file of libFuzzer
  int count = static_cast<int>(pointers.size());
  char **all = pointers.data();
  return LLVMFuzzerRunDriver(&count, &all, [](const std::uint8_t *data, std::size_t bytes) {
    run.count();
    try {
      run_case(data, bytes);
    } catch (const std::exception &error) {
      std::fprintf(stderr, "%s\n", error.what());
      std::abort();
    }
    return 0;
  });
}

#else

int main(int argc, char **argv) {
  campaign::Run run(argc, argv);
  for (std::uint64_t number = run.only; !run.is_over(); ++number) {
    campaign::Random random(run.seed, number);
    std::vector<std::uint8_t> data(random.below(kMostBytes));
    for (std::uint8_t &byte : data) byte = static_cast<std::uint8_t>(random.next());
    run.count();
    try {
      run_case(data.data(), data.size());
    } catch (const std::exception &error) {
      run.find(number, true, error.what());
    }
    if (run.only_one) break;
  }
  return run.finish();
}

#endif
