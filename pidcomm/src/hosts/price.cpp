#include "hosts/price.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "model/price.h"
#include "pidcomm/hosts.h"

namespace pidcomm {

LinkRate rate_of(const LinkSettings &settings, const pidcomm_machine &machine,
                 pidcomm_transport_kind transport, uint32_t hosts) {
  if (settings.gb_s > 0) return {settings.gb_s, settings.latency_us, machine.switch_gb_s};
  if (transport == PIDCOMM_TRANSPORT_MPI) return {machine.network_gb_s, machine.network_latency_us};
  const double share = machine.pool_devices * machine.pool_device_gb_s / hosts;
  return {std::min(machine.pool_gb_s, share), machine.pool_latency_us, machine.switch_gb_s};
}

namespace {

double seconds_of(uint64_t bytes, double gb_s) {
  return gb_s > 0 ? static_cast<double>(bytes) / (1e9 * gb_s) : 0;
}

}  // namespace

double seconds_of(const std::vector<Round> &rounds, const LinkRate &link) {
  double seconds = 0;
  const double latency = 1e-6 * link.latency_us;
  for (const Round &round : rounds) {
    const Traffic sent = traffic_of({round}, true), received = traffic_of({round}, false);
    const auto one_way = [&](const Traffic &traffic) {
      return seconds_of(traffic.bytes, link.gb_s) + latency * static_cast<double>(traffic.messages);
    };
    seconds += std::max(one_way(sent), one_way(received)) + (round.syncs ? 2 * latency : 0);
    for (const Combine &combine : round.combines)
      if (!round.is_on_switch)
        seconds += combine.into.memory == Area::Memory::pool || !pool_areas(combine, false).empty()
                       ? latency
                       : 0;
      else
        seconds += 2 * latency + seconds_of(combine.into.size_bytes() * (1 + combine.from.size()),
                                            link.switch_gb_s);
  }
  return seconds;
}

std::pair<double, Plan> HostsPricer::local(const HostsPlan &plan, const Local &local) const {
  const pidcomm_request request = local_request(plan, local, {});
  try {
    Plan made =
        plan_on([this] { return machine_; }, plan.local, request, options_, plan.whole.heap_base);
    double seconds = pidcomm::price(made, machine_).seconds_total;
    for (const bool is_write : {true, false})
      for (const Area *area : pool_areas(plan, local, is_write))
        seconds =
            std::max(seconds, 1e-6 * link_.latency_us + seconds_of(area->size_bytes(), link_.gb_s));
    return {seconds, std::move(made)};
  } catch (const Error &error) {
    fail_local(plan, local, error);
  }
}

HostsPrice HostsPricer::price(const HostsPlan &plan, bool overlaps) const {
  std::map<std::tuple<int, uint64_t, bool, bool, Area::Memory>, double>
      known;  // the price does not depend on the offsets
  const auto seconds_of_all = [&](const std::vector<Local> &locals) {
    double seconds = 0;
    for (const Local &one : locals) {
      const auto [at, is_new] = known.try_emplace(
          {one.collective, one.bytes, one.src == one.dst, one.transposes, one.area.memory}, 0);
      if (is_new) at->second = local(plan, one).first;
      seconds += at->second;
    }
    return seconds;
  };
  HostsPrice price;
  // The thread of the local collectives and the link, as Runner::overlapped of runner.cpp lets them
  // run.
  double thread = 0, link = 0;
  std::vector<double> exchanged;
  const auto run = [&](const std::vector<Local> &locals, double ready) {
    const double seconds = seconds_of_all(locals);
    price.local += seconds;
    thread = std::max(thread, ready) + seconds;
  };
  const std::size_t pieces = plan.pieces.size();
  for (std::size_t j = 0; j < pieces; ++j) {
    if (j == 0) run(plan.pieces[0].before, 0);
    const double begin = thread, seconds = seconds_of(plan.pieces[j].rounds, link_);
    price.exchange += seconds;
    if (j == 0) link = begin;
    link = std::max(link, begin) + seconds;
    exchanged.push_back(link);
    if (j + 1 < pieces) run(plan.pieces[j + 1].before, 0);
    if (j == 0) run(plan.meanwhile, 0);
    if (j > 0) run(plan.pieces[j - 1].after, exchanged[j - 1]);
  }
  if (pieces != 0) run(plan.pieces.back().after, exchanged.back());
  run(plan.last, 0);
  price.total = overlaps ? thread : price.local + price.exchange;
  return price;
}

Schedule choose_schedule(std::size_t overlap, const HostsPricer &pricer,
                         const std::function<HostsPlan(uint32_t)> &make) {
  Schedule best;
  if (overlap == PIDCOMM_OVERLAP_OFF) return best;
  const bool must = overlap == PIDCOMM_OVERLAP_ON;
  best.overlaps = must;
  double best_seconds =
      must ? std::numeric_limits<double>::infinity() : pricer.price(make(1), false).total;
  for (const uint32_t pieces : kPieceChoices) {
    const HostsPlan plan = make(pieces);
    if (plan.pieces.size() != pieces) break;  // cannot be cut further
    if (must && pieces == 1) continue;        // taken only if the plan cannot be cut
    const double seconds = pricer.price(plan, true).total;
    if (seconds >= best_seconds) continue;
    best = {pieces, true};
    best_seconds = seconds;
  }
  return best;
}

}  // namespace pidcomm
