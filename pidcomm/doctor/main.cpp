// pidcomm-doctor: a check list for a machine with real or emulated UPMEM DIMMs. It uses only the
// UPMEM SDK and the C API of the library.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "doctor/checks.h"

namespace {

using namespace doctor;

constexpr const char *kUsage =
    "usage: pidcomm-doctor [--quick] [--minutes M] [--ranks N] [--profile TEXT] [--seed N] [--json "
    "FILE|-]\n"
    "\n"
    "Checks the library on this machine, in about ten minutes: the memory of every rank, the "
    "address map, the caches, the ownership of\n"
    "the PEs' memory, every collective and its speed. Then it runs random calls for the rest of "
    "the time. It overwrites the MRAM of the\n"
    "ranks that it allocates. The exit code is 0 if no item failed, 1 if an item failed, 2 for "
    "wrong options.\n"
    "\n"
    "  --quick         check less, in about ten seconds\n"
    "  --minutes M     duration (default: 10); random calls fill the remaining time\n"
    "  --ranks N       number of ranks to allocate (default: all free ranks; on an emulated "
    "machine 4)\n"
    "  --profile TEXT  profile of the allocation (default: backend=hw,regionMode=perf)\n"
    "  --seed N        seed of the payloads and the random calls (default: 1)\n"
    "  --json FILE     also write one JSON object per line to FILE; with -, print only JSON, to "
    "standard output\n";

struct Options {
  Settings settings;
  uint32_t ranks = PIDCOMM_SDK_IS_EMULATED ? 4 : DPU_ALLOCATE_ALL;
  std::string profile = "backend=hw,regionMode=perf";
  double minutes = 10;
  std::string json_target;  // "": no JSON; "-": only JSON, to stdout
};

/// Returns no value if the arguments are wrong, and stores the wrong argument in `wrong`.
std::optional<Options> parse(int argc, char **argv, std::string &wrong) {
  Options options;
  options.settings.is_emulated = PIDCOMM_SDK_IS_EMULATED;
  const auto number = [](const char *text, double least, double most, double &value) {
    char *end = nullptr;
    value = std::strtod(text, &end);
    return end != text && *end == 0 && value >= least && value <= most;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--quick") {
      options.settings.is_quick = true;
      continue;
    }
    wrong = name;
    if (i + 1 == argc) return std::nullopt;
    wrong += joined(" '", argv[i + 1], "'");
    const char *const text = argv[++i];
    double value = 0;
    if (name == "--minutes" && number(text, 0, 1e6, value))
      options.minutes = value;
    else if (name == "--ranks" && number(text, 1, 1e6, value))
      options.ranks = static_cast<uint32_t>(value);
    else if (name == "--seed" && number(text, 0, 1e15, value))
      options.settings.seed = static_cast<uint64_t>(value);
    else if (name == "--profile")
      options.profile = text;
    else if (name == "--json" && *text != 0)
      options.json_target = text;
    else
      return std::nullopt;
  }
  return options;
}

std::string best_isa() {
  std::string best = "none";
  int best_level = 0;
#define PIDCOMM_ROW(ENUM, code, name, level)                    \
  if (level > best_level && pidcomm_isa_available(code) != 0) { \
    best_level = level;                                         \
    best = name;                                                \
  }
  PIDCOMM_ISAS(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  return best;
}

int examine(const Options &options, std::FILE *json) {
  const Stopwatch total;
  const Settings &settings = options.settings;
  Report report(json != stdout, json);
  report.header(
      {{"pidcomm", pidcomm_version()},
       {"sdk", PIDCOMM_SDK_NAME},
       {"dimms",
        settings.is_emulated
            ? "EMULATED: the results do not cover caches, ownership and speed of real DIMMs"
            : "real"},
       {"isa", best_isa()}});

  std::unique_ptr<Ranks> ranks;
  const bool has_ranks = report.item("ranks", [&] {
    ranks = std::make_unique<Ranks>(options.ranks, options.profile);
    return ranks->describe();
  });
  if (!has_ranks || !report.item("mapping of each rank", [&] { return check_mappings(*ranks); }))
    return report.finish();  // all other items need the ranks

  const uint32_t egs = ranks->whole_egs();
  std::unique_ptr<Cube> cube;
  const auto with_cube = [&](const auto &check) {
    return [&, check]() -> std::string {
      if (cube == nullptr) cube = std::make_unique<Cube>(ranks->set(), Axes{8, egs});
      return check();
    };
  };
  report.item("address map, SDK first", with_cube([&] {
                return check_address_map(*cube, Direction::kSdkToLibrary, settings);
              }));
  report.item("address map, SDK last", with_cube([&] {
                return check_address_map(*cube, Direction::kLibraryToSdk, settings);
              }));
  report.item("stale lines", with_cube([&] { return check_stale_lines(*cube, settings); }));
#define PIDCOMM_ROW(ENUM, code, name, ...) \
  report.item(#name, [&] { return check_collective(*ranks, code, settings); });
  PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  double limit_gb_s = 0;
  report.item("speed of a copy", with_cube([&] {
                limit_gb_s = copy_gb_s(*cube, settings);
                return joined(limit_gb_s, " GB/s of the memory bus");
              }));
#define PIDCOMM_ROW(ENUM, code, name, ...) \
  report.item("speed of " #name,           \
              with_cube([&] { return measure_collective(*cube, code, limit_gb_s, settings); }));
  PIDCOMM_COLLECTIVES(PIDCOMM_ROW)
#undef PIDCOMM_ROW
  report.item("launches", with_cube([&] {
                return check_launches(*ranks, *cube, PeProgram(settings.is_emulated), settings);
              }));
  cube.reset();
#define PIDCOMM_ROW(ENUM, code, name, path, steps, collectives, ...) \
  if (code != PIDCOMM_TECHNIQUE_TILE)                                \
    report.item("technique " name,                                   \
                [&] { return check_technique(*ranks, code, collectives, settings); });
  PIDCOMM_TECHNIQUES(PIDCOMM_ROW)  // the checks of collectives above used `tile`
#undef PIDCOMM_ROW
  const double left =
      settings.is_quick ? 2 : std::max(10.0, 60 * options.minutes - total.seconds());
  report.item("random calls", [&] { return soak(*ranks, left, settings); });
  return report.finish();
}

}  // namespace

int main(int argc, char **argv) {
  if (argc == 2 && (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0)) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  std::string wrong;
  const std::optional<Options> options = parse(argc, argv, wrong);
  if (!options) {
    std::fprintf(stderr, "pidcomm-doctor: %s is wrong (see pidcomm-doctor --help)\n",
                 wrong.c_str());
    return 2;
  }
  const std::string &target = options->json_target;
  if (target.empty()) return examine(*options, nullptr);
  if (target == "-") return examine(*options, stdout);
  const std::unique_ptr<std::FILE, int (*)(std::FILE *)> file(std::fopen(target.c_str(), "w"),
                                                              std::fclose);
  if (file == nullptr) {
    std::fprintf(stderr, "pidcomm-doctor: cannot write %s: %s\n", target.c_str(),
                 std::strerror(errno));
    return 2;
  }
  return examine(*options, file.get());
}
