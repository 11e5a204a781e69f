// A cube over several hosts: runs the plans of this host on a local hypercube and a link.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>

#include "base/recorder.h"
#include "exec/executor.h"
#include "hosts/agreement.h"
#include "hosts/link.h"
#include "hosts/price.h"

namespace pidcomm {

/// Settings of a connection with the defaults filled in. Errors: ERR_ARGUMENT (a setting is out of
/// range).
struct HostsSettings {
  LinkSettings link;
  std::size_t overlap = PIDCOMM_OVERLAP_AUTO;
  pidcomm_transport_kind transport = PIDCOMM_TRANSPORT_MPI;  // of plans without a connection

  static HostsSettings of(const pidcomm_hosts_settings &settings);
  std::string to_string() const;
};

class HostsCube {
 public:
  /// local: must outlive the cube. machine() returns the machine on which `auto` predicts times.
  /// The cube takes over the transport, and closes it if the constructor throws. Errors: those of
  /// pidcomm_hosts_connect.
  HostsCube(Executor &local, const pidcomm_transport &transport,
            const pidcomm_hosts_settings &settings,
            const std::function<pidcomm_machine()> &machine);

  /// Runs a call after all earlier calls of `run` and `start`. Errors: those of pidcomm_hosts_run.
  pidcomm_trace run(const pidcomm_request &request, uint32_t root, const pidcomm_options *options);

  /// Throws the errors on which the hosts agree before a call moves bytes. A missing host buffer is
  /// not checked.
  void validate(const pidcomm_request &request, uint32_t root, const pidcomm_options *options);

  /// Runs a call on another thread. The future throws the errors of `run`. Errors: ERR_OPTION (the
  /// transport does not allow it).
  std::future<pidcomm_trace> start(const pidcomm_request &request, uint32_t root,
                                   const pidcomm_options *options);

  /// Takes part in the next call with an error, and throws the error on which the hosts agree.
  void refuse(pidcomm_status status, const std::string &sentence);

 private:
  struct Prepared;
  class Ticket;
  void check_locals(const HostsPlan &plan, const pidcomm_request &request,
                    const pidcomm_options *options, bool checks_rows);
  using MakePlan = std::function<HostsPlan(uint32_t pieces)>;
  Schedule fitting(const MakePlan &make) const;
  Prepared prepare(const MakePlan &make, const pidcomm_request &request,
                   const pidcomm_options *options, bool checks_rows);
  Prepared agreed(const pidcomm_request &request, uint32_t root, const pidcomm_options *options,
                  bool checks_rows, Recording *recording);
  pidcomm_trace carry_out(Recording &recording, const pidcomm_request &request, uint32_t root,
                          const pidcomm_options *options);

  Executor &local_;
  std::function<pidcomm_machine()> machine_;
  Link link_;
  Recorder recorder_;
  HostsSettings settings_;
  std::mutex tickets_;  // guards last_
  std::shared_future<void>
      last_;  // ready at the end of the last call; calls run in the order of their tickets
};

/// Returns the plan of a host as JSON; see pidcomm_hosts_plan_json. Errors: those of
/// make_hosts_plan, and of local plans.
std::string hosts_plan_json(const Hypercube &local, uint32_t hosts, uint32_t host,
                            const pidcomm_request &request, uint32_t root, const Options &options,
                            const HostsSettings &settings, const pidcomm_machine &machine);

}  // namespace pidcomm
