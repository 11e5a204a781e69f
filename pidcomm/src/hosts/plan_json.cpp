// The JSON of plans over hosts, with predicted times.
#include <algorithm>
#include <map>
#include <tuple>

#include "hosts/hosts.h"
#include "plan/json_writer.h"

namespace pidcomm {

namespace {

const char *name_of(Area::Memory memory) {
  return memory == Area::Memory::window ? "transport"
         : memory == Area::Memory::pool ? "pool"
                                        : "caller";
}

/// Writes the local collectives of a plan. Calls that differ only in their offsets are one line,
/// with their number.
class LocalWriter {
 public:
  LocalWriter(JsonWriter &json, const HostsPlan &plan, const HostsPricer &pricer)
      : json_(json), plan_(plan), pricer_(pricer) {}

  void write(const char *key, const std::vector<Local> &locals) {
    std::vector<std::pair<Local, uint64_t>> kinds;
    for (const Local &one : locals) {
      const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const auto &kind) {
        return kind.first.collective == one.collective && kind.first.bytes == one.bytes;
      });
      same == kinds.end() ? void(kinds.emplace_back(one, 1)) : void(++same->second);
    }
    json_.open(key, '[');
    for (const auto &[one, calls] : kinds) write(one, calls);
    json_.close(']');
  }

  uint64_t bus_bytes() const { return bus_bytes_; }
  uint64_t row_bytes() const { return row_bytes_; }

 private:
  void write(const Local &one, uint64_t calls) {
    const auto [seconds, local] = pricer_.local(plan_, one);
    const MemberSteps *steps = member_steps_of(local);
    const uint64_t pes = local.cube.pes;
    const uint64_t bus = steps != nullptr ? steps->bytes_read() + steps->bytes_written()
                                          : (local.in_pe_bytes + local.out_pe_bytes) * pes;
    const uint64_t rows = (local.in_row_bytes + local.out_row_bytes) * local.grouping.groups;
    bus_bytes_ += calls * bus;
    row_bytes_ += calls * rows;
    json_.open(nullptr, '{');
    json_.string("collective", name_of_collective(one.collective));
    json_.string("technique", name_of_technique(local.options.technique));
    json_.number("calls", calls);
    if (one.transposes) json_.boolean("transposes", true);
    json_.number("bytes_per_pe", one.bytes);
    json_.number("src", local.src);
    json_.number("dst", local.dst);
    json_.number("mram_bytes", calls * bus);
    json_.number("row_bytes", calls * rows);
    if (rows != 0) json_.string("rows", name_of(one.area.memory));
    json_.real("seconds", static_cast<double>(calls) * seconds);
    json_.close('}');
  }

  JsonWriter &json_;
  const HostsPlan &plan_;
  const HostsPricer &pricer_;
  uint64_t bus_bytes_ = 0, row_bytes_ = 0;
};

void write_rounds(JsonWriter &json, const std::vector<Round> &rounds, const LinkRate &link) {
  json.open("rounds", '[');
  for (const Round &round : rounds) {
    const Traffic sent = traffic_of({round}, true), received = traffic_of({round}, false);
    json.open(nullptr, '{');
    json.number("messages_sent", sent.messages);
    json.number("bytes_sent", sent.bytes);
    json.number("messages_received", received.messages);
    json.number("bytes_received", received.bytes);
    if (round.syncs) json.boolean("syncs", true);
    if (round.is_on_switch) json.boolean("on_switch", true);
    json.number("reductions", round.combines.size());
    json.real("seconds", seconds_of({round}, link));
    json.close('}');
  }
  json.close(']');
}

}  // namespace

std::string hosts_plan_json(const Hypercube &local, uint32_t hosts, uint32_t host,
                            const pidcomm_request &request, uint32_t root, const Options &options,
                            const HostsSettings &settings, const pidcomm_machine &machine) {
  const auto make = [&](uint32_t pieces) {
    return make_hosts_plan(local, hosts, host, request, root, options, 0, pieces,
                           settings.transport);
  };
  const LinkRate link = rate_of(settings.link, machine, settings.transport, hosts);
  const HostsPricer pricer(machine, options, link);
  HostsPlan plan = make(1);
  const Schedule schedule =
      plan.pieces.empty() ? Schedule{} : choose_schedule(settings.overlap, pricer, make);
  if (schedule.pieces > 1) plan = make(schedule.pieces);
  const HostsPrice price = pricer.price(plan, schedule.overlaps);
  const Traffic sent = traffic_of(plan, true), received = traffic_of(plan, false);
  JsonWriter json;
  json.open(nullptr, '{');
  json.string("collective", name_of_collective(plan.whole.collective));
  json.string("shape", plan.whole.cube.to_string());
  json.string("mask", plan.whole.mask);
  json.string("dtype", name_of_type(plan.whole.type.code));
  if (plan.whole.reduces) json.string("op", name_of_op(plan.whole.op));
  json.number("hosts", hosts);
  json.number("host", host);
  json.number("root", plan.root);
  json.number("group_pes", plan.whole.grouping.group_pes);
  json.number("bytes_per_pe", plan.whole.bytes);
  json.boolean("overlaps", schedule.overlaps);
  LocalWriter locals(json, plan, pricer);
  json.open("pieces", '[');
  for (const Piece &piece : plan.pieces) {
    json.open(nullptr, '{');
    locals.write("before", piece.before);
    write_rounds(json, piece.rounds, link);
    locals.write("after", piece.after);
    json.close('}');
  }
  json.close(']');
  locals.write("meanwhile", plan.meanwhile);
  locals.write("last", plan.last);
  json.open("link", '{');
  json.number("messages_sent", sent.messages);
  json.number("bytes_sent", sent.bytes);
  json.number("messages_received", received.messages);
  json.number("bytes_received", received.bytes);
  json.close('}');
  json.number("mram_bytes", locals.bus_bytes());
  json.number("row_bytes", locals.row_bytes());
  json.number("window_bytes", plan.window_bytes);
  if (plan.pool_bytes != 0) json.number("pool_bytes", plan.pool_bytes);
  json.open("seconds", '{');
  json.real("local", price.local);
  json.real("exchange", price.exchange);
  json.real("total", price.total);
  json.close('}');
  json.close('}');
  return json.text();
}

}  // namespace pidcomm
