// Predicts the time of a plan over hosts from the same steps that run.
#pragma once

#include <functional>
#include <utility>

#include "hosts/link.h"
#include "hosts/plan.h"
#include "model/machine.h"
#include "plan/options.h"

namespace pidcomm {

/// The rate and latency of a link between hosts, or of a host's port of a pool, and the rate of the
/// switch.
struct LinkRate {
  double gb_s, latency_us, switch_gb_s = 0;
};

/// Returns the rate of the emulated link, or, if there is none, that of the machine's network or
/// pool. If the hosts together use more than the devices of a pool have, each of them gets a share.
LinkRate rate_of(const LinkSettings &settings, const pidcomm_machine &machine,
                 pidcomm_transport_kind transport, uint32_t hosts);

/// Seconds of rounds on the link of this host. A link sends and receives at the same time; a round
/// ends before the next round starts. A sync takes two latencies, and so does a request to the
/// switch.
double seconds_of(const std::vector<Round> &rounds, const LinkRate &link);

/// Predicted seconds of a plan. `total` takes the overlap of exchanges and local
/// collectives into account if `overlaps`.
struct HostsPrice {
  double local = 0, exchange = 0, total = 0;
};

/// Prices plans on one machine.
class HostsPricer {
 public:
  HostsPricer(const pidcomm_machine &machine, const Options &options, const LinkRate &link)
      : machine_(machine), options_(options), link_(link) {}

  /// Predicted seconds of a local collective, and the plan that it prices.
  std::pair<double, Plan> local(const HostsPlan &plan, const Local &local) const;
  HostsPrice price(const HostsPlan &plan, bool overlaps) const;

 private:
  const pidcomm_machine &machine_;
  const Options &options_;
  LinkRate link_;
};

/// How a collective overlaps exchanges with local collectives.
struct Schedule {
  uint32_t pieces = 1;
  bool overlaps = false;
};

/// The schedules that `auto` compares. Off: one piece.
inline constexpr uint32_t kPieceChoices[] = {1, 2, 4, 8, 16};

/// Returns the schedule of a pidcomm_overlap: the one with the lowest predicted time. `on` has at
/// least 2 pieces if the plan can be cut. make(pieces) makes the plan.
Schedule choose_schedule(std::size_t overlap, const HostsPricer &pricer,
                         const std::function<HostsPlan(uint32_t)> &make);

}  // namespace pidcomm
