// Several host threads run blocking and non-blocking collectives, on one shared set and on sets of
// their own, while they also create hypercubes, make errors and change the model's machine. Each
// thread has its own windows and checks its results.
#include <pidcomm/model.h>

#include <thread>

#include "../native/collective_cases.h"
#include "campaign.h"

namespace {

using namespace collective_cases;
using campaign::Random;

constexpr std::uint32_t kThreads = 4;
constexpr std::size_t kStep =
    1 << 20;  // the windows of thread t are in [t * kStep, (t + 1) * kStep)
const std::vector<Axes> kShapes = {{8, 4}, {4, 2, 4}, {3, 5}, {20}};

void ok(int status) {
  if (status != PIDCOMM_OK)
    machine::fail("status " + std::to_string(status) + ": " + pidcomm_last_error());
}

/// Ends a non-blocking call in one of three ways.
void finish(Random &random, pidcomm_pending *pending) {
  switch (random.below(3)) {
    case 0:
      return ok(pidcomm_wait(&pending, nullptr));
    case 1:
      for (int is_done = 0; !is_done;) ok(pidcomm_test(&pending, &is_done, nullptr));
      return;
    default: {
      int status = 0;
      std::jthread([&] { status = pidcomm_wait(&pending, nullptr); }).join();
      if (status != PIDCOMM_OK)
        machine::fail("another thread got status " + std::to_string(status));
    }
  }
}

/// Makes calls that other threads must not notice.
void disturb(Random &random, const DpuSet &set, pidcomm_hypercube *cube) {
  switch (random.below(5)) {
    case 0: {
      const Hypercube another(set, random.of(kShapes));
      return;
    }
    case 1:
      if (pidcomm_alltoall(cube, "2", 8, 0, 0, PIDCOMM_INT32) != PIDCOMM_ERR_MASK ||
          pidcomm_last_error()[0] == 0)
        machine::fail("no error");
      return;
    case 2: {
      pidcomm_machine machine = PIDCOMM_MACHINE_INITIALIZER;
      const char *name;
      ok(pidcomm_machine_builtin(random.below(2), &name, &machine));
      return ok(pidcomm_use_machine(random.one_in(2) ? &machine : nullptr));
    }
    case 3:
      if (pidcomm_hypercube_create(set.get(), 0, nullptr, &cube) == PIDCOMM_OK)
        machine::fail("no error");
      return;
    default:
      return;
  }
}

/// Writes the input, runs the case and compares the result.
void run_case(Random &random, pidcomm_hypercube *cube, const Case &c) {
  const verify::Rows in = verify::rows_before(c.problem), out = verify::rows_after(c.problem);
  Bytes before(in.bytes()), got(out.bytes());
  verify::fill(c.takes_op() ? c.fill : Fill::kDistinct, c.problem.type, c.problem.op, c.seed,
               in.row_bytes, before);
  if (in.at_pes) ok(pidcomm_write(cube, c.src, in.row_bytes, before.data()));
  Bytes &host = in.at_pes ? got : before;
  const bool has_host = !in.at_pes || !out.at_pes;
  const pidcomm_request request = {sizeof request,
                                   c.problem.collective,
                                   c.problem.mask.c_str(),
                                   c.problem.bytes,
                                   c.src,
                                   c.dst,
                                   has_host ? host.data() : nullptr,
                                   has_host ? host.size() : 0,
                                   c.problem.type,
                                   c.problem.op};
  if (random.one_in(2)) {
    ok(pidcomm_run(cube, &request, &c.options, nullptr));
  } else {
    pidcomm_pending *pending = nullptr;
    ok(pidcomm_irun(cube, &request, &c.options, &pending));
    finish(random, pending);
  }
  if (out.at_pes) ok(pidcomm_read(cube, c.dst, out.row_bytes, got.data()));
  const verify::Verdict verdict = verify::check(c.problem, before, got);
  if (verdict.wrong != 0) machine::fail(verdict.first + " [" + machine::describe(c) + "]");
}

void attack(campaign::Run &run, std::uint32_t thread, const DpuSet &shared,
            const std::vector<const Hypercube *> &shared_cubes) {
  const DpuSet own = DpuSet::of_dpus(40);
  const Hypercube own_cube(own, kShapes[thread % kShapes.size()]);
  static const std::vector<Element> kElements = elements();
  for (std::uint64_t number = thread; !run.is_over(); number += kThreads) {
    Random random(run.seed, number);
    const bool is_shared = random.one_in(2);
    const Hypercube &cube = is_shared ? *random.of(shared_cubes) : own_cube;
    std::string mask;
    for (std::size_t axis = 0; axis < cube.axis_len().size(); ++axis)
      mask += random.one_in(2) ? '1' : '0';
    const int collective = random.of(kCollectives);
    const std::uint32_t group_pes = verify::groups_of(cube.axis_len(), mask).group_pes;
    const std::size_t bytes =
        bytes_for_blocks(collective, group_pes, 8 * (1 + random.below(random.one_in(8) ? 200 : 8)));
    Case c = make_case(collective, cube.axis_len(), mask, bytes, random.of(kElements),
                       random.next() >> 20);
    use_technique(c,
                  random.one_in(4) ? random.of(techniques_for(collective, cube.axis_len()))
                                   : +PIDCOMM_TECHNIQUE_TILE,
                  thread * kStep + kStep * 3 / 4);
    c.src = thread * kStep + 8 * random.below(64);
    c.dst = can_be_in_place(collective) && random.one_in(3) ? c.src : c.src + kStep / 2;
    c.options.threads = static_cast<int>(1 + random.below(3));
    run.count();
    try {
      disturb(random, is_shared ? shared : own, cube.get());
      run_case(random, cube.get(), c);
    } catch (const std::exception &error) {
      run.find(number, false, error.what());
    }
  }
}

}  // namespace

int main(int argc, char **argv) {
  campaign::Run run(argc, argv);
  machine::power_up(kThreads + 1);
  const DpuSet shared = DpuSet::of_ranks(1);
  const Hypercube fast(shared, {8, 8}), general(shared, {5, 7}), last(shared, {4, 4}, 48);
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < kThreads; ++i)
      threads.emplace_back([&, i] {
        try {
          attack(run, i, shared, {&fast, &general, &last});
        } catch (const std::exception &error) {
          run.find(i, false, error.what());
        }
      });
  }
  return run.finish();
}
